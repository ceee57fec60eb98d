// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exchange/receive_hook.hpp>

#include <gtest/gtest.h>

namespace {

using namespace ferry;

TEST(receive_hook, runs_exactly_once) {
  int runs = 0;
  receive_hook hook([&]() -> result<void> {
    ++runs;
    return {};
  });
  EXPECT_TRUE(hook.pending());
  hook().value();
  EXPECT_FALSE(hook.pending());
  result<void> const again = hook();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, error_code::invalid_state);
  EXPECT_EQ(runs, 1);
}

TEST(receive_hook, may_be_null) {
  receive_hook none;
  EXPECT_FALSE(none.pending());
  none().value();
  none().value();
}

TEST(receive_hook, passes_on_an_error_and_is_done) {
  receive_hook hook([] { return result<void>{error{error_code::timeout, "late"}}; });
  EXPECT_EQ(hook().error().message, "late");
  EXPECT_EQ(hook().error().code, error_code::invalid_state);
}

TEST(receive_hook, leaves_nothing_behind_when_it_moves) {
  int runs = 0;
  receive_hook first([&]() -> result<void> {
    ++runs;
    return {};
  });
  receive_hook second(std::move(first));
  first().value();  // null now
  EXPECT_EQ(runs, 0);
  second().value();
  receive_hook third;
  third = std::move(second);
  EXPECT_EQ(third().error().code, error_code::invalid_state);
  second().value();
  EXPECT_EQ(runs, 1);
}

}  // namespace
