// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/network.hpp>

#include "transport/team_doubles.hpp"

#include <ferry/exec/cpu/cpu_team.hpp>
#include <ferry/memory/window.hpp>
#include <ferry/transport/loopback.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <thread>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;

static_assert(delivery<network_delivery, idle_team>);
static_assert(delivery<network_delivery, cpu_team<void>>);

// Rank 0's view: itself and rank 1 mapped, rank 2 behind a network.
struct three_windows {
  std::array<window, 3> memory{window::plain(4096).value(), window::plain(4096).value(),
                               window::plain(4096).value()};
  std::array<std::byte*, 3> table{memory[0].data(), memory[1].data(), nullptr};
  outbox out{
      make_loopback_transport(0, {{memory[0].bytes()}, {memory[1].bytes()}, {memory[2].bytes()}},
                              {.delay = 300, .longest_delay = 500us}),
      3, 1 << 12, 20s};
  network_delivery net{{table.data(), 0, 2048}, &out};

  std::uint64_t word(std::size_t rank, std::size_t offset) const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory[rank].data() + offset))
        .load(std::memory_order_acquire);
  }
};

TEST(network_delivery, stores_where_there_is_a_window_and_posts_where_there_is_none) {
  three_windows w;
  EXPECT_EQ(w.net.own_flags(), w.memory[0].data());
  EXPECT_EQ(w.net.own_rows(), w.memory[0].data());
  std::vector<std::byte> row(64, std::byte{3});
  for (int rank = 0; rank < 3; ++rank) {
    w.net.put(idle_team{}, rank, 128, row.data(), row.size());
    w.net.publish(idle_team{}, rank, flag::arrived, 0, 9);
  }
  // Mapped words are there when publish returns.
  EXPECT_EQ(w.word(0, 0), 9u);
  EXPECT_EQ(w.word(1, 0), 9u);
  auto const end = std::chrono::steady_clock::now() + 20s;
  while (w.word(2, 0) != 9 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  for (auto const& m : w.memory) EXPECT_EQ(std::memcmp(m.data() + 128, row.data(), row.size()), 0);
  EXPECT_FALSE(w.out.first_error());
}

TEST(network_delivery, publishes_after_everything_that_was_put_before) {
  three_windows w;
  for (std::uint64_t n = 1; n <= 100; ++n) {
    for (std::size_t i = 0; i < 5; ++i)
      w.net.put(idle_team{}, 2, 64 + 8 * i, reinterpret_cast<std::byte const*>(&n), 8);
    w.net.publish(idle_team{}, 2, flag::back, 0, n);
    while (w.word(2, 0) != n) std::this_thread::yield();
    for (std::size_t i = 0; i < 5; ++i)
      ASSERT_EQ(*reinterpret_cast<std::uint64_t*>(w.memory[2].data() + 64 + 8 * i), n);
  }
  EXPECT_FALSE(w.out.first_error());
}

TEST(network_delivery, has_a_row_posted_by_the_leader_alone) {
  three_windows w;
  std::uint64_t const row = 7;
  w.net.put(lane_of<4>{1}, 2, 64, reinterpret_cast<std::byte const*>(&row), 8);
  w.net.publish(idle_team{}, 2, flag::back, 0, 1);
  while (w.word(2, 0) != 1) std::this_thread::yield();
  EXPECT_EQ(w.word(2, 64), 0u);
  w.net.put(lane_of<4>{0}, 2, 64, reinterpret_cast<std::byte const*>(&row), 8);
  w.net.publish(idle_team{}, 2, flag::back, 0, 2);
  while (w.word(2, 0) != 2) std::this_thread::yield();
  EXPECT_EQ(w.word(2, 64), 7u);
}

}  // namespace
}  // namespace ferry::test
