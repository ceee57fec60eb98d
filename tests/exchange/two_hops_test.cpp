// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Exchanges between nodes that one process plays: ranks of a node are mapped, others are reached
// through the loopback network.

#include "exchange/hops.hpp"
#include "exchange/random_world.hpp"
#include "exchange/rank_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using ::testing::HasSubstr;

world random_nodes(std::uint64_t seed, hops how, bool per_choice = false) {
  dice from(seed);
  world w;
  choose_formats(w, from);
  choose_sizes(w, from);
  choose_layout(w, from);
  exchange_options& o = w.options;
  w.ranks = pick(from, 2, 7);
  int const per_node = pick(from, 1, w.ranks - 1);
  w.ranks_per_node = how == hops::two ? per_node : 0;
  o.hops = how;
  if (per_choice) o.reduction = reduction::per_choice;
  o.round_tokens = 0;
  o.num_microbatches = pick(from, 1, 3);
  o.via = reach::network;
  o.faults = {.seed = seed,
              .delay = pick(from, 0, 10),
              .longest_delay = std::chrono::microseconds(100),
              .try_again = pick(from, 0, 200)};
  for (int r = 0; r < w.ranks; ++r) w.fnuz.push_back(one_in(from, 2));
  w.read_the_same();
  for (int i = 0; i < 5; ++i) w.steps.push_back(random_step(w, from));
  w.ranks_per_node = per_node;
  return w;
}

// Every rank takes the same draws of calls (R8); returns bytes that each rank sent in dispatch.
std::vector<std::uint64_t> run_nodes(world const& w, int steps, std::uint64_t seed) {
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(w.ranks));
  complaints wrong;
  run_ranks(
      w.ranks, std::chrono::seconds(30), wrong,
      [&](group const& ranks) {
        result<exchange> ep = make_exchange(ranks, options_of(w, ranks.rank()));
        if (!ep) return wrong.add(ep.error().message);
        wrong.check(ep->options().hops == w.options.hops, "another way was chosen");
        queue q = queue::cpu(w.options.blocks).value();
        std::vector<rank_slot> slots;
        for (int s = 0; s < w.options.num_microbatches; ++s)
          slots.emplace_back(w, ranks.rank(), s, *ep, wrong);
        dice order(seed);
        for (int done = 0; done < steps;) {
          rank_slot& slot = slots[order() % slots.size()];
          if (!slot.advance(q)) return;
          done += slot.idle();
        }
        for (rank_slot& slot : slots)
          while (!slot.idle())
            if (!slot.advance(q)) return;
        bytes[static_cast<std::size_t>(ranks.rank())] = ep->counters().dispatch_bytes;
      },
      w.ranks_per_node);
  EXPECT_TRUE(wrong.none()) << "seed " << seed << ", nodes of " << w.ranks_per_node << ": "
                            << describe(w) << "\n"
                            << wrong.text();
  return bytes;
}

TEST(two_hops, bring_every_row_to_its_experts_and_home_in_random_worlds) {
  int const worlds = effort(24);
  for (int i = 0; i < worlds && !HasFailure(); ++i) {
    std::uint64_t const seed = 9000 + static_cast<std::uint64_t>(i);
    run_nodes(random_nodes(seed, hops::two), 10, seed);
  }
}

// What comes to the experts and, with per_choice, what comes home has the bits of one hop: both
// are held against the same oracle, bit for bit. Fewer records leave their rank.
TEST(two_hops, send_no_more_than_one_hop_does) {
  for (std::uint64_t seed = 9500; seed < 9504 && !HasFailure(); ++seed) {
    world const one = random_nodes(seed, hops::one, true);
    world two = one;
    two.options.hops = hops::two;
    auto const direct = run_nodes(one, 8, seed), relayed = run_nodes(two, 8, seed);
    for (std::size_t r = 0; r < direct.size(); ++r)
      EXPECT_LE(relayed[r], direct[r]) << "rank " << r;
  }
}

// The outputs of a step of numbers that are not whole: any other order of additions gives other
// bits.
std::vector<float> output_of(int ranks_per_node, hops how, reduction sums, int blocks) {
  constexpr int ranks = 5, tokens = 19, hidden = 150, topk = 6, experts = 13;
  std::vector<float> all(static_cast<std::size_t>(ranks * tokens * hidden));
  exchange_options o{.num_experts = experts, .topk = topk, .hidden = hidden, .max_tokens = tokens};
  o.tokens = o.expert_rows = o.output = dtype::f32;
  o.wire = o.combine_wire = wire::f32;
  o.reduction = sums;
  o.blocks = blocks;
  o.via = reach::network;
  o.hops = how;
  complaints wrong;
  run_ranks(
      ranks, std::chrono::seconds(30), wrong,
      [&](group const& g) {
        dice from(static_cast<std::uint64_t>(g.rank()));
        auto const real = [&] {
          return std::ldexp(static_cast<float>(from() % 2000001) - 1e6f, -pick(from, 10, 30));
        };
        std::vector<float> x(static_cast<std::size_t>(tokens * hidden));
        std::vector<float> weights(static_cast<std::size_t>(tokens * topk));
        std::vector<std::int32_t> ids(weights.size());
        for (float& v : x) v = real();
        for (float& v : weights) v = real();
        for (std::int32_t& e : ids) e = one_in(from, 9) ? -1 : pick(from, 0, experts - 1);
        exchange ep = make_exchange(g, o).value();
        queue q = queue::cpu(blocks).value();
        received const got = ep.microbatch(0)
                                 .dispatch(q, {.tokens = rows_of(x.data(), tokens, hidden),
                                               .choices = dense(ids.data(), tokens, topk),
                                               .weights = dense(weights.data(), tokens, topk)})
                                 .value();
        typed_rows made(*got.end, hidden, dtype::f32, 0);
        for (int e = 0; e < got.num_local_experts; ++e)
          for (int p = got.starts[e]; p < got.starts[e] + got.counts[e]; ++p)
            for (int c = 0; c < hidden; ++c)
              made.set(
                  p, c,
                  expert(got.first_expert + e, reinterpret_cast<float const*>(got.rows[p])[c]));
        ep.microbatch(0)
            .combine(q, made.view(),
                     rows_of(all.data() + g.rank() * tokens * hidden, tokens, hidden))
            .value();
      },
      ranks_per_node);
  EXPECT_TRUE(wrong.none()) << wrong.text();
  return all;
}

bool same_bits(std::vector<float> const& a, std::vector<float> const& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(two_hops, give_the_bits_of_one_hop_with_per_choice) {
  auto const direct = output_of(0, hops::one, reduction::per_choice, 1);
  for (int per_node : {1, 2, 3, 4})
    EXPECT_TRUE(
        same_bits(direct, output_of(per_node, hops::two, reduction::per_choice, 1 + per_node % 3)))
        << "nodes of " << per_node;
}

TEST(two_hops, give_the_same_bits_on_every_run_with_per_rank) {
  auto const first = output_of(2, hops::two, reduction::per_rank, 1);
  EXPECT_TRUE(same_bits(first, output_of(2, hops::two, reduction::per_rank, 2)));
  EXPECT_FALSE(same_bits(first, output_of(0, hops::one, reduction::per_rank, 1)))
      << "these numbers do not show the order of additions";
  // Where each node has one rank there is nothing to sum.
  EXPECT_TRUE(same_bits(output_of(0, hops::one, reduction::per_rank, 1),
                        output_of(1, hops::two, reduction::per_rank, 1)));
}

// Ranks 0 and 1 are one node. Rank 1 waits for its relay, rank 0, which waits for rank 2.
TEST(two_hops, name_the_rank_that_a_relay_waits_for) {
  std::atomic<int> failed{0};
  complaints wrong;
  run_ranks(
      3, std::chrono::seconds(30), wrong,
      [&](group const& g) {
        exchange_options o{.num_experts = 6, .topk = 2, .hidden = 64, .max_tokens = 8};
        o.hops = hops::two;
        o.via = reach::network;
        o.timeout = std::chrono::seconds(5);
        exchange ep = make_exchange(g, o).value();
        if (g.rank() == 2) {
          while (failed < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
          return;
        }
        queue q;
        std::vector<bf16> x(64);
        std::vector<std::int32_t> const ids{0, 5};
        auto const got = ep.microbatch(0).dispatch(
            q, {.tokens = rows_of(x.data(), 1, 64), .choices = dense(ids.data(), 1, 2)});
        ++failed;
        wrong.check(!got && got.error().message.find("rank 2 did not come") == 0,
                    got ? "no error" : got.error().message);
      },
      2);
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(two_hops, are_one_where_all_ranks_are_of_one_node) {
  complaints wrong;
  run_ranks(3, std::chrono::seconds(20), wrong, [&](group const& g) {
    exchange_options o{.num_experts = 6, .topk = 2, .hidden = 64, .max_tokens = 8};
    o.hops = hops::two;
    wrong.check(make_exchange(g, o).value().options().hops == hops::one, "two hops in one node");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(two_hops, are_refused_with_rounds_and_when_ranks_disagree) {
  exchange_options o{.num_experts = 6, .topk = 2, .hidden = 64, .max_tokens = 8};
  o.hops = hops::two;
  o.round_tokens = 4;
  result<void> const checked = validate(o, 4);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, error_code::invalid_argument);
  EXPECT_THAT(checked.error().message, HasSubstr("round_tokens 4"));
  o.round_tokens = 0;
  o.hops = static_cast<hops>(9);
  ASSERT_FALSE(validate(o, 4));
  EXPECT_THAT(validate(o, 4).error().message, HasSubstr("hops is 9"));
  complaints wrong;
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& g) {
    exchange_options mine = o;
    mine.hops = g.rank() == 0 ? hops::one : hops::two;
    result<exchange> const made = make_exchange(g, mine);
    wrong.check(!made && made.error().message.find("hops is") != std::string::npos,
                "ranks that differ in hops");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

exchange_shape deepseek(int tokens, int ranks) {
  exchange_options o{.num_experts = 256, .topk = 8, .hidden = 7168, .max_tokens = tokens};
  o.wire = wire::fp8_e4m3;
  return shape_of(o, 0, ranks);
}

TEST(two_hops, pay_for_long_steps_on_nodes_of_several_ranks) {
  EXPECT_FALSE(two_hops_pay(deepseek(128, 16), node_map::of_equal(16, 8)));
  EXPECT_TRUE(two_hops_pay(deepseek(4096, 16), node_map::of_equal(16, 8)));
  EXPECT_TRUE(two_hops_pay(deepseek(4096, 64), node_map::of_equal(64, 8)));
  EXPECT_FALSE(two_hops_pay(deepseek(4096, 16), node_map::of_equal(16, 1)));
  EXPECT_FALSE(two_hops_pay(deepseek(4096, 8), node_map::of_equal(8, 0)));
  bool paid = false;
  for (int tokens = 1; tokens <= 8192; tokens *= 2) {
    bool const pays = two_hops_pay(deepseek(tokens, 32), node_map::of_equal(32, 8));
    EXPECT_TRUE(pays || !paid) << "longer steps save more: " << tokens;
    paid = pays;
  }
  EXPECT_TRUE(paid);
}

TEST(two_hops, are_asked_for_in_window_bytes) {
  exchange_options o{.num_experts = 256, .topk = 8, .hidden = 7168, .max_tokens = 128};
  o.wire = wire::fp8_e4m3;
  o.num_microbatches = 1;
  std::size_t const plain = window_bytes(o, 16).value();
  EXPECT_EQ(window_bytes(o, 16, device_kind::cpu, 8).value(), plain) << "a small batch";
  o.hops = hops::two;
  EXPECT_EQ(window_bytes(o, 16).value(), plain) << "one node";
  std::size_t const record = 7168 + 224 + 64, home = 14336;
  EXPECT_NEAR(static_cast<double>(window_bytes(o, 16, device_kind::cpu, 8).value()),
              static_cast<double>(plain + 128 * (record + 8 * home)), 32768);
  EXPECT_FALSE(window_bytes(o, 16, device_kind::cpu, -1));
}

}  // namespace
