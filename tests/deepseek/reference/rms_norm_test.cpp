// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/reference/rms_norm.hpp>

#include <gtest/gtest.h>

namespace ferry::deepseek::reference {
namespace {

TEST(reference_rms_norm, divides_by_the_root_of_the_mean_square) {
  std::vector<float> const weight{1, 2};
  auto const y = rms_norm({3, 4}, weight, 0);
  EXPECT_DOUBLE_EQ(y[0], 3 / std::sqrt(12.5));
  EXPECT_DOUBLE_EQ(y[1], 8 / std::sqrt(12.5));
  EXPECT_DOUBLE_EQ(rms_norm({3, 4}, weight, 3.5)[0], 0.75);
}

}  // namespace
}  // namespace ferry::deepseek::reference
