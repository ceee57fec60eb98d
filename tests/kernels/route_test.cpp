// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/route.hpp>

#include <ferry/exec/cpu/cpu_team.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;

struct level {};

struct fixture {
  std::vector<std::int32_t> owners = {0, 0, 1, 2, 2};
  std::vector<std::int32_t> choices = std::vector<std::int32_t>(8, 99);
  std::vector<float> weights = std::vector<float>(8, 0);
  step_frame frame;
  waiter waits{{}, nullptr, nullptr, {}};
  cpu_team<level> team{0, 1, waits, nullptr, nullptr};

  fixture() {
    frame.shape = {.ranks = 3, .experts = 5, .topk = 4, .max_tokens = 2, .round_tokens = 2};
    frame.memory.choices = choices.data();
    frame.memory.weights = weights.data();
    frame.memory.owners = owners.data();
  }
};

TEST(route, keeps_known_ids_and_counts_the_others) {
  fixture f;
  std::vector<std::int64_t> const ids = {0, 0, 0, 0, 0, 0, 4, std::int64_t{1} << 32, -1, 5};
  std::vector<float> const weights = {9, 9, 9, 9, 9, 9, 0.5f, 2, 3, 4};
  caller_routing const from{ids.data(), 6, true, weights.data(), 6};
  EXPECT_EQ(keep_routing(f.team, f.frame, from, {f.frame, 0}, 1), 2u) << "-1 is no mistake";
  EXPECT_EQ(f.choices, (std::vector<std::int32_t>{99, 99, 99, 99, 4, -1, -1, -1}));
  EXPECT_EQ(f.weights[4], 0.5f);
  EXPECT_EQ(f.weights[7], 4.0f);
}

TEST(route, reads_int32_ids_and_takes_missing_weights_for_ones) {
  fixture f;
  std::vector<std::int32_t> const ids = {3, -1, -2, 1};
  EXPECT_EQ(keep_routing(f.team, f.frame, {ids.data(), 4, false, nullptr, 0}, {f.frame, 0}, 0), 1u);
  EXPECT_EQ(f.choices[0], 3);
  EXPECT_EQ(f.choices[2], -1);
  EXPECT_EQ(f.choices[3], 1);
  EXPECT_EQ(f.weights[0], 1.0f);
}

TEST(route, visits_each_serving_rank_once_in_ascending_order) {
  fixture f;
  f.choices = {4, 0, 3, 1, -1, -1, -1, -1};
  f.frame.memory.choices = f.choices.data();
  routing const r = routing_of(f.frame, 0);
  EXPECT_EQ(r.rank(0), 2);
  EXPECT_EQ(r.next_rank(-1), 0);
  EXPECT_EQ(r.next_rank(0), 2);
  EXPECT_EQ(r.next_rank(2), -1);
  routing const nobody = routing_of(f.frame, 1);
  EXPECT_EQ(nobody.rank(3), -1);
  EXPECT_EQ(nobody.next_rank(-1), -1);
}

}  // namespace
