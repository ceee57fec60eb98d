// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/rows_there.hpp>

#include <gtest/gtest.h>

namespace ferry::deepseek {
namespace {

TEST(rows_there, is_what_the_device_says_and_never_more_than_the_rows) {
  std::int32_t end = 3;
  EXPECT_EQ(rows_there(5, nullptr), 5);
  EXPECT_EQ(rows_there(5, &end), 3);
  EXPECT_EQ(rows_there(2, &end), 2);
  end = 0;
  EXPECT_EQ(rows_there(5, &end), 0);
}

}  // namespace
}  // namespace ferry::deepseek
