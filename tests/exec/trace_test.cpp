// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/trace.hpp>

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace {

using namespace ferry;

TEST(trace, keeps_spans_and_counts_those_without_room) {
  trace t(3);
  EXPECT_TRUE(t.spans().empty());
  for (int i = 0; i < 5; ++i) t.add({.name = "x", .layer = i});
  ASSERT_EQ(t.spans().size(), 3U);
  EXPECT_EQ(t.spans()[2].layer, 2);
  EXPECT_EQ(t.dropped(), 2U);
}

TEST(trace, takes_spans_from_several_threads) {
  trace t(4000);
  std::vector<std::thread> threads;
  for (int n = 0; n < 4; ++n)
    threads.emplace_back([&t, n] {
      for (int i = 0; i < 1000; ++i) t.add({.name = "x", .layer = n * 1000 + i});
    });
  for (std::thread& one : threads) one.join();
  std::set<int> seen;
  for (trace_span const& s : t.spans()) seen.insert(s.layer);
  EXPECT_EQ(seen.size(), 4000U);
  EXPECT_EQ(t.dropped(), 0U);
}

TEST(trace, has_a_clock_that_does_not_go_back) {
  std::int64_t const before = trace::now();
  EXPECT_LE(before, trace::now());
}

}  // namespace
