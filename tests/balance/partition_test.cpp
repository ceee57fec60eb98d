// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "balance/partition.hpp"

#include "balance/generated_routing.hpp"

#include <gtest/gtest.h>

#include <set>

namespace ferry::balance {
namespace {

/// Whether all places are full and no rank holds a kind twice.
void expect_full(partition_problem const& problem, std::vector<int> const& rank_of) {
  std::vector<int> count(problem.places.size());
  std::set<std::pair<int, int>> held;
  for (std::size_t i = 0; i < rank_of.size(); ++i) {
    ++count[static_cast<std::size_t>(rank_of[i])];
    if (!problem.kind.empty()) {
      EXPECT_TRUE(held.insert({rank_of[i], problem.kind[i]}).second) << "item " << i;
    }
  }
  EXPECT_EQ(count, problem.places);
}

TEST(partition, heaviest_first_finds_room_for_the_last_of_a_kind) {
  // Dealt greedily, the last copy of kind 2 finds only a rank that has one.
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    test::random_source random(seed);
    int const ranks = 2 + random.below(5), kinds = 1 + random.below(9);
    partition_problem problem;
    problem.num_kinds = kinds;
    for (int k = 0; k < kinds; ++k) {
      int const copies = 1 + random.below(ranks);
      for (int c = 0; c < copies; ++c) {
        problem.kind.push_back(k);
        problem.load.push_back(1.0 + random.below(3));
      }
    }
    int const items = problem.num_items();
    if (items < ranks) continue;
    for (int r = 0; r < ranks; ++r)
      problem.places.push_back((r + 1) * items / ranks - r * items / ranks);
    SCOPED_TRACE(seed);
    auto const rank_of = heaviest_first(problem);
    expect_full(problem, rank_of);
    partition p(problem, rank_of);
    double const before = p.most();
    level(p, 0, 20);
    expect_full(problem, p.rank_of());
    EXPECT_LE(p.most(), before);
    EXPECT_GE(p.most(), lower_bound(problem) * (1 - 1e-12));
  }
}

TEST(partition, keeps_loads_and_members_through_swaps) {
  test::random_source random(5);
  partition_problem problem;
  problem.places = {4, 3, 3};
  for (int i = 0; i < 10; ++i) problem.load.push_back(random.uniform());
  partition p(problem, heaviest_first(problem));
  for (int n = 0; n < 200; ++n) {
    int const a = random.below(10), b = random.below(10);
    if (p.rank_of(a) != p.rank_of(b)) p.swap(a, b);
  }
  expect_full(problem, p.rank_of());
  for (int r = 0; r < 3; ++r) {
    double sum = 0, last = 2;
    for (int item : p.members(r)) {
      EXPECT_EQ(p.rank_of(item), r);
      EXPECT_LE(p.item_load(item), last);
      last = p.item_load(item);
      sum += last;
    }
    EXPECT_NEAR(p.load(r), sum, 1e-12);
  }
}

TEST(partition, lower_bound_sees_what_two_hot_items_force) {
  // 10 and 9 lie apart or together; apart, four of the others share their ranks.
  partition_problem problem{{10, 9, 2, 2, 2, 2, 1, 1, 1}, {}, 0, {3, 3, 3}};
  EXPECT_EQ(lower_bound(problem), 12);  // (10 + 9 + 1 + 1 + 1 + 2) / 2
  partition_problem thirds{{5, 5, 5, 5, 5, 5, 5}, {}, 0, {2, 2, 3}};
  EXPECT_EQ(lower_bound(thirds), 15);  // 35 / 3, and sums are multiples of five
  partition_problem few{{4, 1}, {}, 0, {1, 0, 1, 0}};
  EXPECT_EQ(lower_bound(few), 4);
}

TEST(partition, lower_bound_is_never_above_what_can_be_reached) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    test::random_source random(seed);
    partition_problem problem{{}, {}, 0, {2, 2, 3}};
    for (int i = 0; i < 7; ++i)
      problem.load.push_back(seed % 2 ? random.uniform() : random.below(20));
    // All ways to fill the places.
    double best = 1e9;
    std::vector<int> rank_of = {0, 0, 1, 1, 2, 2, 2};
    do {
      std::vector<double> sum(3);
      for (std::size_t i = 0; i < 7; ++i)
        sum[static_cast<std::size_t>(rank_of[i])] += problem.load[i];
      best = std::min(best, *std::max_element(sum.begin(), sum.end()));
    } while (std::next_permutation(rank_of.begin(), rank_of.end()));
    EXPECT_LE(lower_bound(problem), best * (1 + 1e-12)) << seed;
    partition p(problem, heaviest_first(problem));
    level(p, best, 2000);
    EXPECT_NEAR(p.most(), best, 1e-12 * best) << seed;
  }
}

}  // namespace
}  // namespace ferry::balance
