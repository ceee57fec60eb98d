// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// R5, as debug and sanitizer builds check it while an exchange runs.

#include <ferry/exec/cpu/waiter.hpp>

#include <gtest/gtest.h>

namespace {

using namespace ferry;

#if defined(FERRY_CHECKED)
constexpr bool checked_build = true;
#else
constexpr bool checked_build = false;
#endif

struct one_word {
  std::uint32_t asleep[2]{};
  status_record status{};
  waiter waits{{.timeout = std::chrono::milliseconds(100)}, asleep, &status, {}};
  std::uint64_t seen = 0;
  bool wait(flag kind, std::uint64_t epoch, std::uint64_t in_word) {
    std::uint64_t const word = in_word << epoch_shift(kind);
    return waits.wait({kind, 1, 0, epoch}, &word, seen);
  }
};

TEST(epoch_ahead, is_taken_where_words_are_credits) {
  one_word w;
  EXPECT_TRUE(w.wait(flag::done, 5, 7));
  EXPECT_TRUE(w.wait(flag::header, 5, 6));
}

TEST(epoch_ahead, is_a_bug_where_rows_were_overwritten) {
  if (!checked_build) GTEST_SKIP() << "this build checks no preconditions";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  one_word w;
  EXPECT_TRUE(w.wait(flag::arrived, 5, 5));
  EXPECT_TRUE(w.wait(flag::back, 5, 5));
  EXPECT_DEATH(w.wait(flag::arrived, 5, 6), "R5");
  EXPECT_DEATH(w.wait(flag::back, 5, 6), "R5");
}

}  // namespace
