// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/device_verbs/nic_access.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace ferry::device_verbs {
namespace {

TEST(nic_access, shows_earlier_stores_to_whoever_sees_the_register) {
  cpu_nic_access const a;
  std::uint64_t reg = 0;
  std::uint32_t data = 0;
  int wrong = 0;
  std::thread nic([&] {
    for (std::uint32_t n = 1; n <= 2000; ++n) {
      while (a.load(&reg) < n) std::this_thread::yield();
      if (a.load(&data) < n) ++wrong;
    }
  });
  for (std::uint32_t n = 1; n <= 2000; ++n) {
    a.store(&data, n);
    a.fence();
    a.ring(&reg, n);
  }
  nic.join();
  EXPECT_EQ(wrong, 0);
}

TEST(nic_access, adds_atomically_and_takes_away_by_wrapping) {
  cpu_nic_access const a;
  std::uint32_t n = 1;
  EXPECT_EQ(a.fetch_add(&n, 0u - 3), 1u);
  EXPECT_EQ(static_cast<std::int32_t>(a.load(&n)), -2);
  std::thread other([&] {
    for (int i = 0; i < 10000; ++i) a.fetch_add(&n, 1);
  });
  for (int i = 0; i < 10000; ++i) a.fetch_add(&n, 1);
  other.join();
  EXPECT_EQ(n, 19998u);
}

TEST(nic_access, loses_patience_after_its_time_and_not_before) {
  host_patience p(std::chrono::milliseconds(30));
  auto const start = std::chrono::steady_clock::now();
  int turns = 0;
  while (p.left()) {
    ++turns;
    std::this_thread::yield();
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(30));
  EXPECT_GT(turns, 0);
  int more = 0;
  while (p.left()) ASSERT_LT(++more, 100) << "looks at the clock now and then";
}

}  // namespace
}  // namespace ferry::device_verbs
