// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/flag.hpp>

#include <gtest/gtest.h>

#include <type_traits>

namespace {

using namespace ferry;

// A header carries 24 bits of tokens, an arrived word a map of 16 tokens; 40 bits of epoch and more
// never wrap.
TEST(flag, leaves_each_kind_the_bits_that_its_word_needs) {
  EXPECT_EQ(epoch_shift(flag::header), 24);
  EXPECT_EQ(epoch_shift(flag::arrived), 16);
  EXPECT_EQ(epoch_shift(flag::back), 0);
  EXPECT_EQ(epoch_shift(flag::done), 0);
}

TEST(flag, has_failures_that_may_lie_in_a_window) {
  EXPECT_TRUE(std::is_trivially_copyable_v<failure>);
  EXPECT_TRUE(std::is_standard_layout_v<failure>);
}

}  // namespace
