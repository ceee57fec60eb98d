// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/gpu/gpu_team.hpp>

#include <ferry/base/float8_codes.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

using namespace ferry;

// A device of one lane, whose clock runs and whose words change while it pauses.
struct slow_device {
  static constexpr int lanes = 1;
  using mask = std::uint8_t;
  using codes = software_codes;

  static inline std::uint64_t now = 0;
  static inline std::vector<std::uint64_t> clock_when_acquired;
  static inline std::uint64_t* arrives = nullptr;  ///< becomes `value` at `arrival`
  static inline std::uint64_t value = 0, arrival = 0;
  static inline std::vector<std::uint64_t> waiting_seen;
  static inline status_record* watched = nullptr;

  static int lane() { return 0; }
  static int team() { return 0; }
  static int block() { return 3; }
  static std::uint32_t broadcast(std::uint32_t v, int) { return v; }
  static std::uint32_t from_lane(std::uint32_t v, int) { return v; }
  static mask ballot(bool b) { return b; }
  template <int>
  static float other_half(float v) {
    return v;
  }
  static void sync() {}
  static void block_sync() {}
  static void drain() {}
  static void release() {}
  static void acquire() { clock_when_acquired.push_back(now); }
  template <class T>
  static T load_word(T const* at) {
    return *at;
  }
  template <class T>
  static void store_word(T* at, T v) {
    *at = v;
  }
  static bool claim(std::uint64_t* at, std::uint64_t v) {
    if (*at != 0) return false;
    *at = v;
    return true;
  }
  template <class T>
  static T add(T* at, T v) {
    T const before = *at;
    *at += v;
    return before;
  }
  static piece load_piece(std::byte const* from) {
    piece v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  static void store_piece(std::byte* to, piece const& v) { std::memcpy(to, &v, sizeof v); }
  static void pause() {
    ++now;
    if (watched && (waiting_seen.empty() || waiting_seen.back() != watched->waiting))
      waiting_seen.push_back(watched->waiting);
    if (arrives && now >= arrival) *arrives = value;
  }
  static std::uint64_t clock() { return now; }
};
using slow_team = gpu_team<slow_device>;
static_assert(team<slow_team>);

struct gpu_team_test : ::testing::Test {
  status_record status{};
  std::uint32_t failed = 0;
  gpu_waits waits{&status, &failed, 1000, 100, 2};
  gpu_block_memory memory;
  std::byte scratch[5 * 32];
  std::uint64_t word = 0;

  gpu_team_test() {
    slow_device::now = 0;
    slow_device::clock_when_acquired.clear();
    slow_device::arrives = nullptr;
    slow_device::waiting_seen.clear();
    slow_device::watched = &status;
  }
};

TEST_F(gpu_team_test, finds_its_own_place_and_scratch) {
  slow_team const t(5, 1, waits, memory, scratch, 32);
  EXPECT_EQ(t.block(), 3);
  EXPECT_EQ(t.blocks(), 5);
  EXPECT_EQ(t.count(), 1);
  EXPECT_EQ(t.row_scratch(), scratch + 3 * 32);
  EXPECT_EQ(t.broadcast(std::int64_t{-5'000'000'000}, 0), -5'000'000'000);
  EXPECT_EQ(t.broadcast(1.5f, 0), 1.5f);
}

TEST_F(gpu_team_test, votes_anew_at_every_barrier) {
  slow_team const t(5, 1, waits, memory, scratch, 32);
  for (bool b : {true, false, true, true, false, false, true}) EXPECT_EQ(t.block_all(b), b);
}

TEST_F(gpu_team_test, acquires_after_the_word_has_come) {
  slow_team const t(5, 1, waits, memory, scratch, 32);
  slow_device::arrives = &word;
  slow_device::value = 7;
  slow_device::arrival = 40;
  std::uint64_t seen = 0;
  EXPECT_TRUE(t.wait({flag::done, 1, -1, 7}, &word, seen));
  EXPECT_EQ(seen, 7u);
  ASSERT_EQ(slow_device::clock_when_acquired.size(), 1u);
  EXPECT_GE(slow_device::clock_when_acquired[0], 40u);
  EXPECT_FALSE(t.failed());
  EXPECT_EQ(status.failed, 0u);
}

TEST_F(gpu_team_test, records_whom_it_waited_for_and_tells_its_rank_when_time_is_up) {
  slow_team const t(5, 1, waits, memory, scratch, 32);
  word = std::uint64_t{6} << 16 | 5;
  std::uint64_t seen = 0;
  EXPECT_FALSE(t.wait({flag::arrived, 4, 9, 7}, &word, seen));
  EXPECT_TRUE(t.failed());
  EXPECT_EQ(failed, 1u);
  EXPECT_EQ(status.failed, status_record::complete);
  EXPECT_EQ(status.record.code, error_code::timeout);
  EXPECT_EQ(status.record.rank, 4);
  EXPECT_EQ(status.record.wait.kind, flag::arrived);
  EXPECT_EQ(status.record.wait.rank, 4);
  EXPECT_EQ(status.record.wait.chunk, 9);
  EXPECT_EQ(status.record.wait.epoch, 7u);
  EXPECT_EQ(status.record.slot, 2);
  EXPECT_EQ(status.record.seen, 6u);
  EXPECT_GE(slow_device::now, 1000u);
  EXPECT_LT(slow_device::now, 1100u) << "a pause never grows long";
}

TEST_F(gpu_team_test, says_whom_it_waits_for_once_it_takes_long_and_takes_it_back) {
  slow_team const t(5, 1, waits, memory, scratch, 32);
  slow_device::arrives = &word;
  slow_device::value = 7;
  slow_device::arrival = 500;
  std::uint64_t seen = 0;
  EXPECT_TRUE(t.wait({flag::done, 4, -1, 7}, &word, seen));
  EXPECT_EQ(slow_device::waiting_seen, (std::vector<std::uint64_t>{0, 5}));
  EXPECT_EQ(status.waiting, 0u);
}

TEST_F(gpu_team_test, leaves_the_first_record_and_leaves_early_when_another_wait_has_failed) {
  slow_team const t(5, 1, waits, memory, scratch, 32);
  status.failed = status_record::complete;
  status.record.rank = 2;
  std::uint64_t seen = 0;
  EXPECT_FALSE(t.wait({flag::done, 4, -1, 7}, &word, seen));
  EXPECT_EQ(status.record.rank, 2) << "the first one stays";
  EXPECT_EQ(failed, 1u);
  std::uint64_t const before = slow_device::now;
  EXPECT_FALSE(t.wait({flag::done, 4, -1, 7}, &word, seen));
  EXPECT_LT(slow_device::now - before, 5u);
}

}  // namespace
