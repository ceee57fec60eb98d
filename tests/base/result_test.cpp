// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/result.hpp>

#include "base/fail.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace ferry {

static result<int> half_of(int x) {
  if (x % 2) return fail(error_code::invalid_argument, "{} is not a multiple of {}", x, 2);
  return x / 2;
}
static result<void> must_be_even(int x) {
  FERRY_TRY([[maybe_unused]] int half, half_of(x));
  return {};
}
static result<int> quarter_of(int x) {
  FERRY_CHECK(must_be_even(x));
  FERRY_TRY(int const half, half_of(x));
  return half_of(half);
}

TEST(result, holds_a_value) {
  auto r = half_of(6);
  ASSERT_TRUE(r.has_value());
  EXPECT_TRUE(static_cast<bool>(r));
  EXPECT_EQ(r.value(), 3);
  EXPECT_EQ(*r, 3);
}

TEST(result, holds_an_error_that_says_what_and_where) {
  auto const r = half_of(7);
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, error_code::invalid_argument);
  EXPECT_EQ(r.error().message, "7 is not a multiple of 2");
  EXPECT_NE(std::string(r.error().where.file_name()).find("result_test.cpp"), std::string::npos);
}

TEST(result, throws_the_error_when_asked_for_a_value) {
  try {
    half_of(7).value();
    FAIL() << "value() returned";
  } catch (bad_result const& bad) {
    EXPECT_STREQ(bad.what(), "invalid_argument: 7 is not a multiple of 2");
    EXPECT_EQ(bad.error().code, error_code::invalid_argument);
  }
  EXPECT_THROW(must_be_even(1).value(), bad_result);
  EXPECT_NO_THROW(must_be_even(2).value());
}

TEST(result, moves_what_cannot_be_copied) {
  result<std::unique_ptr<int>> r = std::make_unique<int>(5);
  std::unique_ptr<int> const owned = std::move(r).value();
  EXPECT_EQ(*owned, 5);
}

TEST(result, hands_the_error_of_an_inner_call_on_unchanged) {
  EXPECT_EQ(quarter_of(12).value(), 3);
  auto const outer = quarter_of(5);
  EXPECT_EQ(outer.error().message, half_of(5).error().message);
  EXPECT_EQ(outer.error().where.line(), half_of(5).error().where.line());
  EXPECT_EQ(quarter_of(6).error().message, "3 is not a multiple of 2");
}

TEST(result, names_each_error_code_once) {
  std::set<std::string> names;
  int const last = static_cast<int>(error_code::internal);
  for (int code = 0; code <= last; ++code) names.insert(to_string(static_cast<error_code>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last + 1));
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_STREQ(to_string(error_code::unreachable), "unreachable");
}

TEST(result, puts_the_answer_of_the_operating_system_into_words) {
  error const e = fail_errno(error_code::io, "cannot open x", ENOENT);
  EXPECT_EQ(e.message, "cannot open x: No such file or directory");
}

TEST(result, ends_the_process_at_a_broken_precondition) {
  EXPECT_DEATH(broken_precondition("a < b", "a lies below b", "x.cpp", 7),
               "x.cpp:7: broken precondition: a lies below b \\(a < b\\)");
}

}  // namespace ferry
