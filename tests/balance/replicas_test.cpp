// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/replicas.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace ferry {
namespace {

// Expert 0 on ranks 0, 1 and 3; 1 on 0 and 2; 2 and 3 once.
placement replicated() {
  return {1, 4, 4, 2, 8, {0, 1, 0, 2, 1, 3, 0, 2}};
}

TEST(replicas, hash_gives_every_replica_its_share_and_the_same_one_each_time) {
  auto const table = replicas_for(replicated(), 0, 1, replica_choice::hash).value();
  std::map<std::int32_t, int> served;
  for (std::uint32_t token = 0; token < 3000; ++token) {
    auto const slot = table.slot(0, token);
    EXPECT_EQ(slot, table.slot(0, token));
    ++served[slot];
  }
  ASSERT_EQ(served.size(), 3u);
  for (auto slot : {0, 2, 6}) EXPECT_NEAR(served[slot], 1000, 120) << slot;
  EXPECT_EQ(table.slot(3, 5), 5);
  EXPECT_EQ(table.slot(-1, 5), -1);
}

TEST(replicas, hash_differs_between_sources_and_experts) {
  EXPECT_NE(replica_hash(0, 7, 3), replica_hash(1, 7, 3));
  EXPECT_NE(replica_hash(0, 7, 3), replica_hash(0, 7, 4));
  EXPECT_NE(replica_hash(0, 7, 3), replica_hash(0, 8, 3));
}

TEST(replicas, round_robin_gives_each_source_its_own) {
  for (int source = 0; source < 4; ++source) {
    auto const table = replicas_for(replicated(), 0, source, replica_choice::round_robin).value();
    for (std::uint32_t token = 0; token < 5; ++token) {
      EXPECT_EQ(table.slot(0, token), (std::array{0, 2, 6}[static_cast<std::size_t>(source % 3)]));
      EXPECT_EQ(table.slot(1, token), (std::array{1, 4}[static_cast<std::size_t>(source % 2)]));
    }
  }
}

TEST(replicas, nearest_prefers_the_own_rank_then_the_own_node_then_the_least_loaded) {
  auto const where = replicated();
  std::vector<double> const loads = {3, 20, 4, 1};
  auto slot = [&](int source, std::int32_t expert) {
    return replicas_for(where, 0, source, replica_choice::nearest, loads).value().slot(expert, 0);
  };
  EXPECT_EQ(slot(0, 0), 0);
  EXPECT_EQ(slot(1, 0), 2);
  EXPECT_EQ(slot(2, 0), 6);  // rank 3 is on its node
  EXPECT_EQ(slot(3, 1), 4);  // rank 2 is on its node
  // From rank 0, expert 2 is on its node at rank 1, and expert 3 on the other at rank 2.
  EXPECT_EQ(slot(0, 2), 3);
  EXPECT_EQ(slot(0, 3), 5);
  // On neither rank nor node: ranks 2 and 3 hold 0's replicas, and 3 has less to do.
  placement const far{1, 3, 4, 2, 5, {1, 2, 0, 0, 1}};
  ASSERT_TRUE(validate(far));
  std::vector<double> const more = {2, 10, 1};
  EXPECT_EQ(replicas_for(far, 0, 0, replica_choice::nearest, more).value().slot(0, 0), 2);
  EXPECT_EQ(far.rank_of(2), 2);
}

TEST(replicas, refuses_layers_sources_and_loads_that_do_not_exist) {
  EXPECT_FALSE(replicas_for(replicated(), 1, 0, replica_choice::hash));
  EXPECT_FALSE(replicas_for(replicated(), 0, 4, replica_choice::hash));
  std::vector<double> const loads = {1, 2};
  EXPECT_FALSE(replicas_for(replicated(), 0, 0, replica_choice::nearest, loads));
}

}  // namespace
}  // namespace ferry
