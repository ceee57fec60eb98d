// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/reference/rope.hpp>

#include <gtest/gtest.h>

#include <numbers>

namespace ferry::deepseek::reference {
namespace {

TEST(reference_rope, turns_each_pair_by_its_own_angle) {
  rope_options const options{4, 10000, {}};
  EXPECT_DOUBLE_EQ(rope_frequency(options, 0), 1);
  EXPECT_DOUBLE_EQ(rope_frequency(options, 1), 0.01);
  auto const y = turn(options, {1, 0, 0, 2}, 3);
  EXPECT_DOUBLE_EQ(y[0], std::cos(3.0));
  EXPECT_DOUBLE_EQ(y[1], std::sin(3.0));
  EXPECT_DOUBLE_EQ(y[2], -2 * std::sin(0.03));
  EXPECT_DOUBLE_EQ(y[3], 2 * std::cos(0.03));
}

TEST(reference_rope, stretches_slow_pairs_alone) {
  yarn stretch;
  stretch.factor = 40;
  rope_options const options{64, 10000, stretch};
  EXPECT_DOUBLE_EQ(rope_frequency(options, 0), 1);
  EXPECT_DOUBLE_EQ(rope_frequency(options, 31), std::pow(10000, -62.0 / 64) / 40);
  double const between = rope_frequency(options, 16);
  EXPECT_LT(between, 0.01);
  EXPECT_GT(between, 0.01 / 40);
}

}  // namespace
}  // namespace ferry::deepseek::reference
