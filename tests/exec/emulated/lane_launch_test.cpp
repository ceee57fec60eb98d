// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/emulated/lane_launch.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace ferry;
using testing::HasSubstr;

TEST(lane_launch, calls_every_lane_once_with_its_own_numbers) {
  for (int lanes : {32, 64}) {
    std::vector<int> visits(static_cast<std::size_t>(3 * 2 * lanes));
    lane_launch launch({3, 2}, lanes, 1);
    launch
        .run([&] {
          lane_launch const& now = lane_launch::current();
          EXPECT_EQ(&now, &launch);
          ++visits[static_cast<std::size_t>((now.block() * 2 + now.team()) * lanes + now.lane())];
        })
        .value();
    EXPECT_EQ(visits, std::vector<int>(visits.size(), 1));
  }
}

TEST(lane_launch, makes_a_teams_stores_when_it_drains_or_the_launch_ends) {
  int drained = 0, kept = 0, seen_before = 1, seen_after = 0, seen_kept = 1;
  lane_launch launch({1, 2}, 32, 5);
  launch
      .run([&] {
        int const one = 1;
        lane_launch& now = lane_launch::current();
        if (now.lane() == 0) now.store_later(now.team() ? &kept : &drained, &one, sizeof one);
        now.block_place().meet("block_sync");
        if (now.team() == 0 && now.lane() == 7) seen_before = drained;
        now.block_place().meet("block_sync");
        if (now.team() == 0) now.drain_stores();
        now.block_place().meet("block_sync");
        if (now.lane() == 3) seen_after = drained, seen_kept = kept;
      })
      .value();
  EXPECT_EQ(seen_before, 0);
  EXPECT_EQ(seen_after, 1);
  EXPECT_EQ(seen_kept, 0);
  EXPECT_EQ(kept, 1);
}

TEST(meeting_place, names_a_barrier_that_not_all_lanes_reach) {
  result<void> const team = lane_launch({1, 2}, 32, 1).run([] {
    lane_launch& now = lane_launch::current();
    if (now.team() == 1 && now.lane() < 3) return;
    now.team_place().meet("sync");
  });
  ASSERT_FALSE(team);
  EXPECT_EQ(team.error().code, error_code::device);
  EXPECT_THAT(team.error().message, HasSubstr("29 at sync of team 1 of block 0"));
  result<void> const block = lane_launch({2, 2}, 32, 1).run([] {
    lane_launch& now = lane_launch::current();
    if (now.block() == 1 && now.team() == 0) return;
    now.block_place().meet("block_sync");
  });
  ASSERT_FALSE(block);
  EXPECT_THAT(block.error().message, HasSubstr("32 at block_sync of block 1"));
}

TEST(meeting_place, names_two_calls_that_lanes_take_for_one) {
  result<void> const r = lane_launch({1, 1}, 64, 1).run([] {
    lane_launch& now = lane_launch::current();
    now.team_place().meet(now.lane() == 4 ? "sync" : "ballot");
  });
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().message, HasSubstr("sync"));
  EXPECT_THAT(r.error().message, HasSubstr("ballot"));
}

}  // namespace
