// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/queue.hpp>

#include <ferry/exec/cpu/cpu_executor.hpp>

#include <gmock/gmock.h>

namespace {

using namespace ferry;

TEST(queue, has_as_many_teams_as_were_asked_for) {
  EXPECT_EQ(queue().teams(), 1);
  for (int teams : {1, 2, 5}) EXPECT_EQ(queue::cpu(teams).value().teams(), teams);
}

TEST(queue, refuses_teams_out_of_range) {
  for (int teams : {0, -1, 257, INT32_MIN}) {
    result<queue> const q = queue::cpu(teams);
    ASSERT_FALSE(q.has_value());
    EXPECT_EQ(q.error().code, error_code::invalid_argument);
    EXPECT_THAT(q.error().message, testing::HasSubstr(std::to_string(teams)));
    EXPECT_THAT(q.error().message, testing::HasSubstr("256"));
  }
}

TEST(queue, is_the_same_queue_when_copied) {
  queue const q = queue::cpu(2).value();
  queue const copy = q;
  EXPECT_EQ(&q.executor(), &copy.executor());
  EXPECT_NE(&q.executor(), &queue::cpu(2).value().executor());
}

}  // namespace
