// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/apply_placement.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "balance/placed_steps.hpp"

namespace {

using namespace ferry;
using namespace ferry::oracle;
using testing::HasSubstr;

device on_cpu(int) {
  return device();
}

TEST(apply_placement, every_choice_reaches_its_expert_whatever_the_placement) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed)
    run_placed_world(seed, 24, on_cpu, [](device const&) { return queue(); });
}

TEST(apply_placement, graphs_on_streams_see_tables_that_change_between_replays) {
  for (std::uint64_t seed = 101; seed <= 108; ++seed)
    run_placed_world(seed, 24, on_cpu, [](device const&) { return queue::cpu_stream(1).value(); });
}

TEST(apply_placement, starts_with_every_expert_in_its_own_slot) {
  complaints wrong;
  placed_world w{.ranks = 2, .experts = 4, .slots = 6, .layers = 2};
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& g) {
    exchange ep = make_exchange(g, w.options()).value();
    std::vector<float> const rows(8, 1.0f);
    std::vector<std::int32_t> const ids = {3, 1};
    queue q;
    auto const in = ep.microbatch(0)
                        .dispatch(q, {.tokens = rows_of(rows.data(), 1, 8),
                                      .choices = dense(ids.data(), 1, 2),
                                      .layer = 1})
                        .value();
    wrong.check(in.num_local_experts == 3, "three slots each");
    int const slot = g.rank() == 0 ? 1 : 0;  // expert 1 in slot 1, expert 3 in slot 3
    wrong.check(in.counts[slot] == 2, "rows of both ranks");
    // No table changes while a step is open.
    auto const refused = ep.write_tables({});
    wrong.check(!refused && refused.error().code == error_code::invalid_state, "an open step");
    ep.microbatch(0).release(q).value();
    wrong.check(ep.write_tables({}).has_value(), "between steps");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

std::string refusal(result<void> const& r) {
  EXPECT_FALSE(r);
  return r ? "" : r.error().message;
}

TEST(apply_placement, refuses_what_does_not_fit_and_changes_no_table) {
  complaints wrong;
  placed_world w{.ranks = 1, .experts = 3, .slots = 3, .layers = 2};
  run_ranks(1, std::chrono::seconds(20), wrong, [&](group const& g) {
    exchange ep = make_exchange(g, w.options()).value();
    auto const place = [&](placement const& p) {
      return refusal(apply_placement(ep, p, replica_choice::hash));
    };
    EXPECT_THAT(place(contiguous_placement(3, 3, 1).value()), HasSubstr("3 layers"));
    EXPECT_THAT(place(contiguous_placement(2, 4, 1).value()), HasSubstr("4 experts"));
    EXPECT_THAT(place(placement{2, 3, 1, 1, 3, {0, 1, 2, 0, 1, 1}}), HasSubstr("layer 1"));
    std::vector<std::int32_t> const ends = {0, 1, 2, 3}, hole = {0, 1, 1, 3};
    std::vector<std::int32_t> const turned = {2, 1, 0}, beyond = {0, 1, 3};
    auto const write = [&](std::vector<expert_table> const& tables) {
      return refusal(ep.write_tables(tables));
    };
    EXPECT_THAT(write({{2, ends, turned}}), HasSubstr("layer 2"));
    EXPECT_THAT(write({{0, ends, turned}, {0, ends, turned}}), HasSubstr("twice"));
    EXPECT_THAT(write({{0, ends, turned}, {1, hole, turned}}),
                HasSubstr("no slot serves expert 1"));
    EXPECT_THAT(write({{0, ends, turned}, {1, ends, beyond}}), HasSubstr("slot 3 of 3"));
    EXPECT_THAT(write({{0, std::span(ends).first(3), turned}}), HasSubstr("3 ends"));
    // Nothing was written: expert 0 still goes to slot 0.
    queue q;
    std::vector<float> const rows(8, 1.0f);
    std::vector<std::int32_t> const ids = {0, -1};
    auto const in =
        ep.microbatch(0)
            .dispatch(q, {.tokens = rows_of(rows.data(), 1, 8), .choices = dense(ids.data(), 1, 2)})
            .value();
    EXPECT_EQ(in.counts[0], 1);
    ep.microbatch(0).release(q).value();
    // Nor are there steps of other layers.
    dispatch_input of_no_layer;
    of_no_layer.layer = 2;
    EXPECT_THAT(refusal(ep.microbatch(0).dispatch_send(q, of_no_layer)), HasSubstr("layer 2"));
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(apply_placement, an_exchange_without_layers_has_no_tables) {
  complaints wrong;
  run_ranks(1, std::chrono::seconds(20), wrong, [&](group const& g) {
    exchange_options o = placed_world{.ranks = 1, .experts = 3, .slots = 3}.options();
    o.layers = o.sampled_tokens = 0;
    exchange ep = make_exchange(g, o).value();
    EXPECT_EQ(ep.write_tables({}).error().code, error_code::invalid_state);
    EXPECT_EQ(ep.slot_loads().error().code, error_code::invalid_state);
    o.expert_slots = 5;
    EXPECT_THAT(make_exchange(g, o).error().message, HasSubstr("expert_slots is 5"));
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

}  // namespace
