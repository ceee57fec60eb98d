// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/mapped.hpp>

#include "transport/team_doubles.hpp"

#include <ferry/exec/cpu/cpu_team.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

namespace ferry::test {
namespace {

static_assert(delivery<mapped_delivery, idle_team>);
static_assert(delivery<mapped_delivery, cpu_team<void>>);
static_assert(delivery<mapped_delivery, lane_of<32>>);

constexpr std::size_t asleep_offset = 512;
struct two_windows {
  alignas(64) std::array<std::array<std::byte, 1024>, 2> bytes{};
  std::array<std::byte*, 2> table{bytes[0].data(), bytes[1].data()};
  mapped_delivery net{table.data(), 0, asleep_offset};
  std::uint64_t* word(int rank, std::size_t offset) {
    return reinterpret_cast<std::uint64_t*>(bytes[static_cast<std::size_t>(rank)].data() + offset);
  }
};

TEST(mapped_delivery, knows_its_own_window) {
  two_windows w;
  EXPECT_EQ(w.net.own_flags(), w.bytes[0].data());
  EXPECT_EQ(w.net.own_rows(), w.bytes[0].data());
  w.net.rank = 1;
  EXPECT_EQ(w.net.own_flags(), w.bytes[1].data());
  EXPECT_EQ(w.net.own_rows(), w.bytes[1].data());
}

TEST(mapped_delivery, puts_a_row_at_its_offset_and_nowhere_else) {
  two_windows w;
  std::byte row[100];
  std::fill(std::begin(row), std::end(row), std::byte{7});
  w.net.put(idle_team{}, 1, 64, row, sizeof row);
  std::size_t written = 0;
  for (std::byte b : w.bytes[1]) written += b != std::byte{0};
  EXPECT_EQ(written, sizeof row);
  EXPECT_EQ(std::memcmp(w.bytes[1].data() + 64, row, sizeof row), 0);
  EXPECT_EQ(w.bytes[0], decltype(w.bytes)::value_type{});
  // The source is free once put has returned.
  std::fill(std::begin(row), std::end(row), std::byte{9});
  EXPECT_EQ(w.bytes[1][64], std::byte{7});
}

TEST(mapped_delivery, publishes_what_it_put_before) {
  two_windows w;
  constexpr std::uint64_t rounds = 20000;
  std::uint64_t stale = 0;
  std::thread reader([&] {
    for (std::uint64_t last = 0; last < rounds;) {
      std::uint64_t const seen = std::atomic_ref(*w.word(1, 0)).load(std::memory_order_acquire);
      if (seen == last) {
        std::this_thread::yield();
        continue;
      }
      stale += *w.word(1, 64) != seen;
      last = seen;
      // The writer waits for this answer before it writes again (the credit).
      std::atomic_ref(*w.word(0, 0)).store(seen, std::memory_order_release);
    }
  });
  for (std::uint64_t n = 1; n <= rounds; ++n) {
    w.net.put(idle_team{}, 1, 64, reinterpret_cast<std::byte const*>(&n), sizeof n);
    w.net.publish(idle_team{}, 1, flag::arrived, 0, n);
    while (std::atomic_ref(*w.word(0, 0)).load(std::memory_order_acquire) != n)
      std::this_thread::yield();
  }
  reader.join();
  EXPECT_EQ(stale, 0u);
}

TEST(mapped_delivery, wakes_who_sleeps_on_the_word) {
  two_windows w;
  status_record status{};
  // Rank 1 waits for a word of rank 0 and has no turns to spin.
  waiter waits({.timeout = std::chrono::seconds(20), .spin_turns = 0, .yield_turns = 0},
               reinterpret_cast<std::uint32_t*>(w.bytes[1].data() + asleep_offset), &status, {});
  auto const asleep = [&] {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(w.bytes[1].data() + asleep_offset))
        .load();
  };
  int slow = 0;
  for (std::uint64_t n = 1; n <= 20; ++n) {
    std::thread sleeper([&] {
      std::uint64_t value = 0;
      EXPECT_TRUE(waits.wait({flag::back, 0, 0, n}, w.word(1, 0), value));
      EXPECT_EQ(value, n);
    });
    while (asleep() == 0) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    auto const start = std::chrono::steady_clock::now();
    w.net.publish(idle_team{}, 1, flag::back, 0, n);
    sleeper.join();
    slow += std::chrono::steady_clock::now() - start > std::chrono::milliseconds(20);
  }
  // A sleeper that nobody wakes looks for itself only every 50 ms.
  EXPECT_LE(slow, 6);
  EXPECT_EQ(asleep(), 0u);
}

}  // namespace
}  // namespace ferry::test
