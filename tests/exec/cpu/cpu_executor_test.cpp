// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/cpu_executor.hpp>

#include <ferry/exec/executor.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <set>

namespace {

using namespace ferry;

struct nothing {
  void operator()(int, int) const {}
};
static_assert(executor<cpu_executor, nothing>);

TEST(cpu_executor, calls_every_team_once_in_every_run) {
  for (int teams : {1, 2, 3, 8}) {
    cpu_executor e(teams);
    EXPECT_EQ(e.teams(), teams);
    std::vector<int> calls(static_cast<std::size_t>(teams), 0);
    for (int run = 1; run <= 200; ++run) {
      e.run([&](int index, int of) {
        if (of == teams) ++calls[static_cast<std::size_t>(index)];
      });
      for (int n : calls) ASSERT_EQ(n, run);
    }
  }
}

TEST(cpu_executor, calls_the_first_teams_alone_where_some_are_asked_for) {
  cpu_executor e(4);
  std::vector<int> calls(4, 0);
  std::vector<int> want(4, 0);
  for (int run = 0; run < 300; ++run) {
    int const some = 1 + run % 4;
    e.run(some, [&](int index, int of) {
      if (of == some) ++calls[static_cast<std::size_t>(index)];
    });
    for (int i = 0; i < some; ++i) ++want[static_cast<std::size_t>(i)];
    ASSERT_EQ(calls, want) << "run " << run;
  }
}

TEST(cpu_executor, lets_teams_wait_for_each_other) {
  cpu_executor e(4);
  for (int run = 0; run < 20; ++run) {
    std::atomic<int> here{0};
    e.run([&](int, int of) {
      ++here;
      while (here < of) std::this_thread::yield();
    });
    EXPECT_EQ(here, 4);
  }
}

TEST(cpu_executor, uses_the_calling_thread_as_its_first_team) {
  cpu_executor e(3);
  std::thread::id first;
  e.run([&](int index, int) {
    if (index == 0) first = std::this_thread::get_id();
  });
  EXPECT_EQ(first, std::this_thread::get_id());
}

TEST(cpu_executor, takes_calls_from_several_threads_in_turn) {
  cpu_executor e(2);
  std::atomic<int> inside{0}, runs{0};
  std::atomic<bool> overlap{false};
  auto const call = [&] {
    for (int i = 0; i < 100; ++i)
      e.run([&](int index, int) {
        if (index != 0) return;
        if (++inside > 1) overlap = true;
        --inside;
        ++runs;
      });
  };
  std::thread a(call), b(call), c(call);
  a.join();
  b.join();
  c.join();
  EXPECT_EQ(runs, 300);
  EXPECT_FALSE(overlap);
}

}  // namespace
