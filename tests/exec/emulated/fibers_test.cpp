// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/emulated/fibers.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

namespace {

using namespace ferry;
using testing::HasSubstr;

TEST(fibers, run_each_function_once) {
  std::vector<int> seen;
  fibers all(1);
  all.run(40, [&](int i) { seen.push_back(i); }).value();
  std::sort(seen.begin(), seen.end());
  std::vector<int> want(40);
  std::iota(want.begin(), want.end(), 0);
  EXPECT_EQ(seen, want);
}

TEST(fibers, run_in_another_order_for_another_seed) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<int> order;
    fibers all(seed);
    all.run(8, [&](int i) { order.push_back(i); }).value();
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 5u);
}

TEST(fibers, keep_their_own_variables_while_others_run) {
  fibers all(3);
  std::vector<int> sums(16);
  all.run(16,
          [&](int i) {
            int sum = 0;
            for (int turn = 0; turn < 10; ++turn) {
              sum += i;
              all.happened();
              all.give_way("turn", "all");
            }
            sums[static_cast<std::size_t>(i)] = sum;
          })
      .value();
  for (int i = 0; i < 16; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)], 10 * i);
}

TEST(fibers, say_where_those_stand_that_wait_in_vain) {
  fibers all(3);
  result<void> const r = all.run(5, [&](int i) {
    if (i >= 3) return;
    for (;;) all.give_way(i == 0 ? "sync" : "any", "team 7");
  });
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::device);
  EXPECT_THAT(r.error().message, HasSubstr("2 of 5 have ended"));
  EXPECT_THAT(r.error().message, HasSubstr("1 at sync of team 7"));
  EXPECT_THAT(r.error().message, HasSubstr("2 at any of team 7"));
}

TEST(fibers, wait_for_other_threads_as_long_as_one_says_that_it_does) {
  std::atomic<bool> come = false;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    come = true;
  });
  fibers all(3);
  int met = 0;
  result<void> const r = all.run(4, [&](int i) {
    if (i == 0) {
      while (!come) all.give_way_outside();
      met = 1;
      all.happened();
    }
    while (!met) all.give_way("meeting", "all");
  });
  other.join();
  EXPECT_TRUE(r) << r.error().message;
}

TEST(fibers, end_at_once_when_one_says_that_they_parted) {
  fibers all(3);
  int went_on = 0;
  result<void> const r = all.run(4, [&](int i) {
    if (i == 2) all.part("two has had enough");
    for (;;) all.give_way_outside(), ++went_on;
  });
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().message, "two has had enough");
  // The same thread runs others afterwards.
  all.run(3, [&](int) { all.happened(), all.give_way("a", "b"); }).value();
}

TEST(fibers_death, fault_when_a_stack_is_too_deep) {
  fibers all(1);
  EXPECT_DEATH(all.run(2,
                       [&](int) {
                         std::byte volatile deep[80 << 10];
                         for (std::size_t i = sizeof deep; i-- > 0;) deep[i] = std::byte{1};
                       })
                   .value(),
               "");
}

}  // namespace
