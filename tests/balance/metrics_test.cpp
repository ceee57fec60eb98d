// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/metrics.hpp>

#include "balance/generated_routing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry {
namespace {

TEST(metrics, replicas_share_their_experts_load) {
  placement const where{2, 3, 2, 1, 4, {0, 1, 0, 2, 1, 2, 0, 2}};
  expert_loads const loads{2, 3, {8, 1, 3, 0, 0, 0}};
  auto const b = balance_of(where, loads).value();
  EXPECT_THAT(b.rank_loads, testing::ElementsAre(5, 7, 0, 0));
  EXPECT_THAT(b.max_over_mean, testing::ElementsAre(7.0 / 6, 1));
  EXPECT_DOUBLE_EQ(b.mean, 13.0 / 12);
  EXPECT_DOUBLE_EQ(b.worst, 7.0 / 6);
  EXPECT_DOUBLE_EQ(b.time_weighted, 7.0 / 6);
}

TEST(metrics, time_weighs_layers_by_their_load) {
  auto const where = contiguous_placement(2, 2, 2).value();
  expert_loads const loads{2, 2, {3, 1, 100, 100}};
  auto const b = balance_of(where, loads).value();
  EXPECT_DOUBLE_EQ(b.mean, 1.25);
  EXPECT_DOUBLE_EQ(b.time_weighted, 103.0 / 102);
}

TEST(metrics, distance_counts_each_rank_and_node_once) {
  auto const where = contiguous_placement(1, 8, 4, 2).value();
  // Ranks {0}, {0,1}, {0,2,3}, none.
  routing_trace const trace{4, 1, 4, {0, 1, 0, -1, 0, 1, 2, 3, 1, 4, 6, 7, -1, -1, -1, -1}};
  auto const d = distance_of(where, trace).value();
  EXPECT_DOUBLE_EQ(d.ranks_per_token, 6.0 / 4);
  EXPECT_DOUBLE_EQ(d.nodes_per_token, 4.0 / 4);
}

TEST(metrics, nearest_replicas_shorten_the_way) {
  test::router r{.experts = 32, .groups = 4, .kept_groups = 2, .topk = 4};
  auto const trace = test::group_limited_trace(r, 512, 1, 5);
  placement where{1, 32, 4, 1, 64, {}};
  for (int rank = 0; rank < 4; ++rank)
    for (int i = 0; i < 16; ++i) where.experts.push_back((rank * 8 + i) % 32);
  ASSERT_TRUE(validate(where));
  auto const far = distance_of(where, trace, replica_choice::hash).value();
  auto const near = distance_of(where, trace, replica_choice::nearest).value();
  EXPECT_LT(near.ranks_per_token, far.ranks_per_token);
}

TEST(metrics, a_perfect_placement_shows_the_floor) {
  // Independent even choices: what remains is chance, which the floor is to predict.
  constexpr int tokens = 8192, experts = 256;
  test::random_source random(3);
  routing_trace trace{tokens, 1, 8, {}};
  for (int t = 0; t < tokens; ++t) {
    std::vector<std::int32_t> chosen;
    while (chosen.size() < 8) {
      auto const e = random.below(experts);
      if (std::find(chosen.begin(), chosen.end(), e) == chosen.end()) chosen.push_back(e);
    }
    trace.experts.insert(trace.experts.end(), chosen.begin(), chosen.end());
  }
  auto const where = contiguous_placement(1, experts, 8).value();
  for (std::int64_t step : {16, 128, 1024}) {
    double const floor = sampling_floor(step, 8, experts, 8).value();
    double const measured = step_imbalance(where, trace, step).value().value();
    EXPECT_NEAR(measured, floor, 0.06 * (floor - 1) + 0.02) << step;
  }
  EXPECT_FALSE(step_imbalance(where, trace, tokens + 1).value().has_value());
}

TEST(metrics, floor_is_what_the_literature_says) {
  EXPECT_NEAR(sampling_floor(128, 8, 256, 8).value(), 1.12, 0.02);
  EXPECT_NEAR(sampling_floor(4096, 8, 256, 8).value(), 1.02, 0.005);
  EXPECT_EQ(sampling_floor(1, 1, 1, 1).value(), 1);
  EXPECT_EQ(sampling_floor(5, 8, 8, 4).value(), 1);  // every token chooses everything
  EXPECT_NEAR(sampling_floor(1 << 24, 8, 256, 8).value(), 1, 0.002);
}

TEST(metrics, wire_bytes_count_what_leaves_the_rank) {
  traffic_shape const shape{
      .hidden = 256, .topk = 8, .wire = wire::bf16, .combine_wire = wire::bf16};
  EXPECT_EQ(wire_bytes_per_token(4, 1, shape), 0);
  EXPECT_DOUBLE_EQ(wire_bytes_per_token(4, 8, shape), 3.5 * (512 + 64 + 512));
  traffic_shape const fp8{
      .hidden = 200, .topk = 8, .wire = wire::fp8_e4m3, .combine_wire = wire::f32};
  EXPECT_DOUBLE_EQ(wire_bytes_per_token(1, 2, fp8), 0.5 * (200 + 8 + 64 + 800));
}

TEST(metrics, refuse_what_does_not_fit_together) {
  auto const where = contiguous_placement(1, 8, 4).value();
  EXPECT_FALSE(balance_of(where, {1, 4, {1, 1, 1, 1}}));
  EXPECT_FALSE(balance_of(where, {1, 8, {1, 1, 1, 1, 1, 1, 1, -1}}));
  EXPECT_FALSE(distance_of(where, {1, 2, 1, {0, 1}}));
  EXPECT_FALSE(distance_of(where, {1, 1, 1, {8}}));
  EXPECT_FALSE(step_imbalance(where, {1, 1, 1, {0}}, 0));
  EXPECT_FALSE(sampling_floor(0, 8, 256, 8));
  EXPECT_FALSE(sampling_floor(128, 9, 8, 8));
}

}  // namespace
}  // namespace ferry
