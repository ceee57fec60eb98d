// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/surviving_experts.hpp>

#include "exchange/rank_threads.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using testing::ElementsAre;
using testing::HasSubstr;

// Two layers of five experts on three ranks of two slots.
placement const joined{2, 5, 3, 1, 6, {0, 1, 2, 3, 4, 0, 4, 3, 2, 1, 0, 2}};

/// What ranks 0 and 2 have when rank 1 has left.
void without_rank_1(std::function<void(group const&, complaints&)> const& body) {
  complaints wrong;
  run_ranks(3, std::chrono::seconds(20), wrong, [&](group const& g) {
    if (g.rank() == 1) return;
    auto const left = g.without({1});
    if (!left) return wrong.add(left.error().message);
    body(*left, wrong);
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(surviving_experts, stay_where_they_are) {
  without_rank_1([](group const& g, complaints&) {
    auto const made = surviving_experts::of(joined, g).value();
    // Experts 2 and 3 of layer 0 are lost, 1 of layer 1: one slot more on each rank.
    EXPECT_EQ(made.expert_slots(), 6);
    EXPECT_THAT(made.where().experts, ElementsAre(0, 1, -1, 4, 0, -1, 4, 3, -1, 0, 2, -1));
    EXPECT_EQ(made.num_lost(), 3);
    for (int e = -1; e <= 5; ++e) {
      EXPECT_EQ(made.is_lost(0, e), e == 2 || e == 3);
      EXPECT_EQ(made.is_lost(1, e), e == 1);
    }
  });
}

TEST(surviving_experts, tables_lead_to_replicas_or_nowhere) {
  without_rank_1([](group const& g, complaints& wrong) {
    auto const made = surviving_experts::of(joined, g).value();
    for (replica_choice const rule :
         {replica_choice::hash, replica_choice::round_robin, replica_choice::nearest}) {
      auto const table = replicas_for(made.where(), 0, g.rank(), rule).value();
      for (std::uint32_t token = 0; token < 8; ++token) {
        for (int e : {2, 3}) wrong.check(table.slot(e, token) == -1, "a lost expert");
        wrong.check(table.slot(1, token) == 1 && table.slot(4, token) == 3, "the only place");
        int const replica = table.slot(0, token);
        wrong.check(replica == 0 || replica == 4, "a replica");
        if (rule == replica_choice::nearest)
          wrong.check(replica == (g.rank() == 0 ? 0 : 4), "the own one");
      }
    }
    exchange_options o{.num_experts = 5, .topk = 2, .hidden = 8, .max_tokens = 4};
    o.tokens = dtype::f32;
    o.expert_slots = made.expert_slots();
    o.layers = 2;
    exchange ep = make_exchange(g, o).value();
    wrong.check(made.apply(ep, replica_choice::hash).has_value(), "tables");
    std::vector<float> const rows(16);
    std::vector<std::int32_t> const ids = {2, 4, -1, 3};
    queue q;
    auto const in =
        ep.microbatch(0)
            .dispatch(q, {.tokens = rows_of(rows.data(), 2, 8), .choices = dense(ids.data(), 2, 2)})
            .value();
    wrong.check(in.num_local_experts == 3, "three slots each");
    wrong.check(*in.end == (g.rank() == 0 ? 0 : 2), "expert 4 is on the second rank");
    wrong.check(ep.counters().ids_out_of_range == 2, "lost choices are counted");
    ep.microbatch(0).release(q).value();
  });
}

TEST(surviving_experts, weights_make_up_for_what_is_lost) {
  without_rank_1([](group const& g, complaints&) {
    auto const made = surviving_experts::of(joined, g).value();
    std::vector<std::int32_t> const ids = {0, 2, 1, 4, 2, 3, -1, 3};
    std::vector<float> weights = {1, 3, 2, 2, 5, 6, 9, 4};
    EXPECT_EQ(made.renormalise(0, {ids.data(), 4, 2, 2}, {weights.data(), 4, 2, 2}), 4);
    // A token that has no expert left keeps its weights, and -1 has none to give.
    EXPECT_THAT(weights, ElementsAre(4, 12, 2, 2, 5, 6, 9, 4));
  });
}

TEST(surviving_experts, refuses_other_sizes) {
  without_rank_1([](group const& g, complaints&) {
    EXPECT_THAT(surviving_experts::of(contiguous_placement(1, 4, 2).value(), g).error().message,
                HasSubstr("joined as 2"));
    auto const made = surviving_experts::of(joined, g).value();
    exchange_options o{.num_experts = 5, .topk = 1, .hidden = 8, .max_tokens = 1};
    o.layers = 2;
    exchange ep = make_exchange(g, o).value();
    EXPECT_THAT(made.apply(ep, replica_choice::hash).error().message, HasSubstr("6 slots"));
  });
}

}  // namespace
