// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/expert_map.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace ferry {
namespace {

// Three experts, in one, two and three slots.
constexpr std::array<std::int32_t, 4> first = {0, 1, 3, 6};
constexpr std::array<std::int32_t, 6> candidates = {4, 0, 3, 1, 2, 5};

TEST(expert_map, an_expert_of_one_slot_is_always_there) {
  for (std::uint32_t token = 0; token < 100; ++token)
    EXPECT_EQ(replica_slot(first.data(), candidates.data(), 3, token, 0), 4);
}

TEST(expert_map, every_replica_gets_its_share_and_nobody_elses) {
  std::vector<int> served(6);
  for (std::uint32_t token = 0; token < 6000; ++token)
    for (std::int32_t expert : {1, 2})
      ++served[static_cast<std::size_t>(
          replica_slot(first.data(), candidates.data(), token % 7, token, expert))];
  EXPECT_EQ(served[4], 0);
  for (std::size_t slot : {0u, 3u}) EXPECT_NEAR(served[slot], 3000, 200) << slot;
  for (std::size_t slot : {1u, 2u, 5u}) EXPECT_NEAR(served[slot], 2000, 200) << slot;
}

// Part of what a step computes: it may not change from one version to the next by accident.
TEST(expert_map, spreads_tokens_by_fixed_numbers) {
  static_assert(replica_hash(0, 0, 0) != replica_hash(0, 1, 0));
  static_assert(replica_slot(first.data(), candidates.data(), 0, 1, 0) == 4);
  EXPECT_EQ(expert_map{}.first, nullptr) << "no tables: choices name slots";
}

}  // namespace
}  // namespace ferry
