// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/device_rank.hpp"

#include "exchange/rank_threads.hpp"
#include "exchange/test_device.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using namespace std::chrono_literals;

constexpr std::size_t flag_bytes = 1024, row_bytes = 256;
constexpr std::uint64_t word = 77;

std::size_t place_of(int rank) {
  return 512 + 64 * static_cast<std::size_t>(rank);
}
std::unique_ptr<device_rank> make(group const& g) {
  return device_rank::make(g, test_device(0), flag_bytes, row_bytes, 0).value();
}

// Threads share memory, so only this function itself can be shown here, not that memory goes.
TEST(device_rank, takes_its_leave_once_all_peers_do) {
  complaints wrong;
  std::atomic<int> leaving = 0;
  run_ranks(3, 60s, wrong, [&](group const& g) {
    auto const rank = make(g);
    wrong.check(!rank->maps_other_processes(), "threads are no other process");
    std::this_thread::sleep_for(g.rank() * 20ms);
    ++leaving;
    rank->take_leave(g, place_of, word, 60s);
    wrong.check(leaving == 3, "one has left while another was still there");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(device_rank, waits_for_none_that_has_left_the_group) {
  complaints wrong;
  run_ranks(2, 60s, wrong, [&](group const& g) {
    auto const rank = make(g);
    if (g.rank() == 1) return;
    auto const start = std::chrono::steady_clock::now();
    rank->take_leave(g, place_of, word, 60s);
    wrong.check(std::chrono::steady_clock::now() - start < 50s, "it waited for nobody");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(device_rank, waits_no_longer_than_it_is_told) {
  complaints wrong;
  std::atomic<bool> over = false;
  run_ranks(2, 60s, wrong, [&](group const& g) {
    auto const rank = make(g);
    if (g.rank() == 1) {
      while (!over) std::this_thread::sleep_for(1ms);
      return;
    }
    rank->take_leave(g, place_of, word, 30ms);
    over = true;
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

}  // namespace
