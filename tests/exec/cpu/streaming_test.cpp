// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/streaming.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

using namespace ferry;

TEST(streaming, copies_any_length_from_and_to_any_address) {
  std::vector<std::byte> from(700);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  for (std::size_t to_at : {0u, 1u, 15u, 16u, 63u})
    for (std::size_t from_at : {0u, 3u, 16u})
      for (std::size_t bytes : {0u, 1u, 15u, 63u, 64u, 65u, 127u, 128u, 200u, 500u}) {
        std::vector<std::byte> to(from.size(), std::byte{0xEE});
        stream_copy(to.data() + to_at, from.data() + from_at, bytes);
        finish_streaming();
        for (std::size_t i = 0; i < to.size(); ++i) {
          bool const inside = i >= to_at && i < to_at + bytes;
          ASSERT_EQ(to[i], inside ? from[from_at + i - to_at] : std::byte{0xEE})
              << to_at << " " << from_at << " " << bytes << " at " << i;
        }
      }
}

// What a peer sees once it sees the flag.
TEST(streaming, is_complete_before_a_flag_that_follows_its_end) {
  std::vector<std::byte> to(1 << 16);
  std::atomic<int> flag = 0, seen = 0;
  std::thread reader([&] {
    for (int turn = 1; turn <= 200; ++turn) {
      while (flag.load(std::memory_order_acquire) < turn) std::this_thread::yield();
      for (std::byte b : to)
        if (b != static_cast<std::byte>(turn)) {
          seen = -1000;
          break;
        }
      ++seen;
      flag.store(-turn, std::memory_order_release);
    }
  });
  for (int turn = 1; turn <= 200; ++turn) {
    std::vector<std::byte> const from(to.size(), static_cast<std::byte>(turn));
    stream_copy(to.data(), from.data(), from.size());
    finish_streaming();
    flag.store(turn, std::memory_order_release);
    while (flag.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  }
  reader.join();
  EXPECT_EQ(seen, 200);
}

TEST(streaming, knows_a_cache_of_a_likely_size) {
  EXPECT_GE(last_cache_bytes(), std::size_t{64} << 10);
  EXPECT_LE(last_cache_bytes(), std::size_t{32} << 20);
}

}  // namespace
