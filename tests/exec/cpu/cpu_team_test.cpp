// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/cpu_team.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace {

using namespace ferry;

struct level {};

struct fixture {
  std::uint32_t asleep[4] = {};
  status_record status{};
  waiter waits{{.timeout = std::chrono::milliseconds(20)}, asleep, &status, {}};
  std::byte scratch[64];
  std::byte shared[8];
  cpu_team<level> team{2, 5, waits, scratch, shared};
};

TEST(cpu_team, is_a_block_of_one_team_of_one_lane) {
  fixture f;
  EXPECT_EQ(f.team.lanes, 1);
  EXPECT_EQ(f.team.lane(), 0);
  EXPECT_TRUE(f.team.leader());
  EXPECT_EQ(f.team.index(), 0);
  EXPECT_EQ(f.team.count(), 1);
  EXPECT_EQ(f.team.block(), 2);
  EXPECT_EQ(f.team.blocks(), 5);
  EXPECT_EQ(f.team.row_scratch(), f.scratch);
  EXPECT_EQ(sizeof(cpu_team<level>::chunk), 64u);
  EXPECT_EQ(alignof(cpu_team<level>::chunk), 1u);
}

TEST(cpu_team, votes_and_exchanges_with_itself) {
  fixture f;
  EXPECT_EQ(f.team.broadcast(3.5f, 0), 3.5f);
  EXPECT_TRUE(f.team.any(true));
  EXPECT_FALSE(f.team.any(false));
  EXPECT_EQ(f.team.ballot(true), 1);
  EXPECT_EQ(f.team.ballot(false), 0);
  EXPECT_EQ(f.team.max_over<1>(-2.0f), -2.0f);
  EXPECT_TRUE(f.team.block_all(true));
  EXPECT_FALSE(f.team.block_all(false));
}

TEST(cpu_team, adds_atomically_and_returns_what_was_there) {
  fixture f;
  std::uint32_t n = 5;
  EXPECT_EQ(f.team.fetch_add(&n, std::uint32_t{3}), 5u);
  std::thread other([&] {
    for (int i = 0; i < 10000; ++i) f.team.fetch_add(&n, std::uint32_t{1});
  });
  for (int i = 0; i < 10000; ++i) f.team.fetch_add(&n, std::uint32_t{1});
  other.join();
  EXPECT_EQ(n, 20008u);
}

TEST(cpu_team, shares_the_failure_of_its_waits) {
  fixture f;
  std::uint64_t const word = 0;
  std::uint64_t seen = 7;
  EXPECT_FALSE(f.team.failed());
  EXPECT_FALSE(f.team.wait({flag::done, 1, -1, 1}, &word, seen));
  EXPECT_EQ(seen, 0u);
  EXPECT_TRUE(f.team.failed());
}

}  // namespace
