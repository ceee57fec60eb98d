// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/queue.hpp>

#include "data/sanitized.hpp"

#include <ferry/exec/cpu/cpu_executor.hpp>

#include <gmock/gmock.h>

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

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

// More address space for a few stacks, but not for 255.
void ask_for_threads_without_room() {
  unsigned long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit room{};
  room.rlim_cur = room.rlim_max =
      pages * static_cast<unsigned long>(sysconf(_SC_PAGESIZE)) + (std::size_t{16} << 20);
  if (setrlimit(RLIMIT_AS, &room) != 0) std::_Exit(10);
  result<queue> const many = queue::cpu(256);
  if (many) std::_Exit(11);
  if (many.error().code != error_code::out_of_memory) std::_Exit(12);
  if (many.error().message.find("255") == std::string::npos) std::_Exit(13);
  std::_Exit(queue::cpu(1) ? 0 : 14);
}

TEST(queue, says_so_when_threads_cannot_be_had) {
  if (ferry::test::is_sanitized)
    GTEST_SKIP() << "a sanitizer needs the address space that is taken away here";
  EXPECT_EXIT(ask_for_threads_without_room(), testing::ExitedWithCode(0), "");
}

TEST(queue, is_the_same_queue_when_copied) {
  queue const q = queue::cpu(2).value();
  queue const copy = q;
  EXPECT_EQ(&q.executor(), &copy.executor());
  EXPECT_NE(&q.executor(), &queue::cpu(2).value().executor());
}

}  // namespace
