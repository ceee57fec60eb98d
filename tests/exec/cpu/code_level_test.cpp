// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/code_level.hpp>

#include <gmock/gmock.h>

#include <cstdlib>

namespace {

using namespace ferry;

// The variable is read once a process, so CTest runs this program once for each value that it may
// have.
TEST(code_level, is_the_one_that_the_environment_names_or_the_best) {
  char const* const wanted = std::getenv("FERRY_CPU_ISA");
  result<code_level> const level = chosen_code_level();
  code_level const best = best_code_level();
  if (!wanted || !*wanted) {
    ASSERT_TRUE(level.has_value());
    EXPECT_EQ(*level, best);
    return;
  }
  std::string const name = wanted;
  int const number = name == "v2" ? 2 : name == "v3" ? 3 : name == "v4" ? 4 : 0;
  if (number == 0) {
    ASSERT_FALSE(level.has_value());
    EXPECT_EQ(level.error().code, error_code::invalid_argument);
    EXPECT_THAT(level.error().message, testing::HasSubstr(name));
    EXPECT_THAT(level.error().message, testing::HasSubstr("v2, v3 or v4"));
  } else if (number > static_cast<int>(best)) {
    ASSERT_FALSE(level.has_value());
    EXPECT_EQ(level.error().code, error_code::unsupported);
  } else {
    ASSERT_TRUE(level.has_value());
    EXPECT_EQ(static_cast<int>(*level), number);
  }
}

TEST(code_level, is_chosen_once) {
  result<code_level> const before = chosen_code_level();
  setenv("FERRY_CPU_ISA", before && *before == code_level::v2 ? "v9" : "v2", 1);
  result<code_level> const after = chosen_code_level();
  EXPECT_EQ(before.has_value(), after.has_value());
  if (before && after) {
    EXPECT_EQ(*before, *after);
  }
}

TEST(code_level, is_never_below_what_every_machine_has) {
  EXPECT_GE(best_code_level(), code_level::v2);
  EXPECT_LE(best_code_level(), code_level::v4);
}

}  // namespace
