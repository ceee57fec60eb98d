// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exchange/turn_order.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

namespace {

using namespace ferry;
using testing::ElementsAre;

/// Turns until each has had as many as it has work for.
std::vector<int> turns_of(turn_order t, std::vector<int> work) {
  std::array<bool, 8> over{};
  std::span<bool> const done = std::span(over).first(work.size());
  for (std::size_t i = 0; i < work.size(); ++i) done[i] = work[i] == 0;
  std::vector<int> order;
  t.restart();
  for (int one = t.next(done); one >= 0; one = t.next(done)) {
    order.push_back(one);
    auto const i = static_cast<std::size_t>(one);
    done[i] = --work[i] == 0;
  }
  return order;
}

TEST(turn_order, goes_round_and_leaves_out_who_is_done) {
  EXPECT_THAT(turns_of({}, {3, 1, 2}), ElementsAre(0, 1, 2, 0, 2, 0));
  EXPECT_THAT(turns_of({}, {0, 2}), ElementsAre(1, 1));
  EXPECT_THAT(turns_of({}, {0, 0}), ElementsAre());
}

TEST(turn_order, follows_a_list_and_then_goes_round) {
  EXPECT_THAT(turns_of(turn_order::listed({1, 1, 0, 1, 1}), {3, 2}), ElementsAre(1, 1, 0, 0, 0));
  EXPECT_THAT(turns_of(turn_order::listed({1}), {2, 2}), ElementsAre(1, 0, 1, 0));
}

TEST(turn_order, draws_the_same_for_the_same_seed_and_every_order_for_some) {
  std::set<std::vector<int>> seen;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    auto const order = turns_of(turn_order::seeded(seed), {2, 2});
    EXPECT_EQ(order, turns_of(turn_order::seeded(seed), {2, 2}));
    seen.insert(order);
  }
  EXPECT_EQ(seen.size(), 6U);
}

}  // namespace
