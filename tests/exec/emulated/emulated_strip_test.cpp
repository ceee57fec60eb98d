// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/emulated/emulated_strip.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;
using testing::HasSubstr;

TEST(emulated_strip, counts_the_strips_of_its_grid) {
  EXPECT_EQ(strips_of({2, 3}, 32), 12);
  EXPECT_EQ(strips_of({2, 3}, 64), 24);
  std::vector<int> visits(12);
  run_on_strips({2, 3}, 32, 1, [&](emulated_strip const& s) {
    EXPECT_EQ(s.count(), 12);
    ++visits[static_cast<std::size_t>(s.index())];
  }).value();
  EXPECT_EQ(visits, std::vector<int>(12, 16));
}

TEST(emulated_strip, needs_a_sync_between_a_store_and_another_lanes_load) {
  int wrong[2] = {};
  for (bool synced : {false, true}) {
    for (std::uint64_t seed = 1; seed < 10; ++seed) {
      std::vector<int> left(32);
      run_on_strips({1, 1}, 32, seed, [&](emulated_strip const& s) {
        int* const mine = left.data() + 16 * s.index();
        s.for_each(16, [&](std::int64_t i) { mine[i] = 1; });
        if (synced) s.sync();
        s.for_each(16, [&](std::int64_t i) { wrong[synced] += mine[(i + 1) % 16] == 0; });
      }).value();
    }
  }
  EXPECT_GT(wrong[0], 0);
  EXPECT_EQ(wrong[1], 0);
}

TEST(emulated_strip, names_a_call_that_not_all_lanes_of_a_strip_reach) {
  auto const ran = run_on_strips({1, 1}, 32, 1, [&](emulated_strip const& s) {
    if (s.index() == 1 && s.leader()) return;
    s.sync();
  });
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().message, HasSubstr("at sync of strip 1"));
}

TEST(emulated_strip, lets_strips_of_a_team_go_different_ways) {
  float sum = 0;
  run_on_strips({1, 1}, 64, 1, [&](emulated_strip const& s) {
    for (int i = 0; i < s.index(); ++i) {
      float const one = s.sum(s.fill(1));
      if (s.leader()) sum += one;
    }
  }).value();
  EXPECT_EQ(sum, 16 * (0 + 1 + 2 + 3));
}

}  // namespace
