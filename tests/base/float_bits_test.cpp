// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/float_bits.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ferry {

TEST(float_bits, goes_to_bits_and_back) {
  EXPECT_EQ(bits_of(1.0f), 0x3F80'0000u);
  EXPECT_EQ(bits_of(-0.0f), f32_sign);
  EXPECT_EQ(float_of(0x4049'0FDBu), 3.14159274f);
  EXPECT_EQ(float_of(f32_infinity), INFINITY);
  EXPECT_TRUE(std::isnan(float_of(f32_nan)));
}

TEST(float_bits, orders_magnitudes_as_integers) {
  EXPECT_EQ(magnitude_bits(-2.5f), magnitude_bits(2.5f));
  EXPECT_LT(magnitude_bits(0.0f), magnitude_bits(std::numeric_limits<float>::denorm_min()));
  EXPECT_LT(magnitude_bits(-1.0f), magnitude_bits(1.5f));
  EXPECT_LT(magnitude_bits(largest_finite<float>), magnitude_bits(-INFINITY));
  EXPECT_LT(magnitude_bits(-INFINITY), magnitude_bits(NAN));
}

TEST(float_bits, tells_nan_from_infinity) {
  EXPECT_TRUE(is_nan(NAN));
  EXPECT_TRUE(is_nan(-NAN));
  EXPECT_TRUE(is_nan(float_of(f32_infinity + 1)));
  EXPECT_FALSE(is_nan(INFINITY));
  EXPECT_FALSE(is_nan(-INFINITY));
  EXPECT_FALSE(is_nan(0.0f));
}

TEST(float_bits, makes_masks_at_the_ends_of_the_range) {
  EXPECT_EQ(mask_below(0, 1), ~0u);
  EXPECT_EQ(mask_below(1, 1), 0u);
  EXPECT_EQ(mask_below(0, 0x7FFF'FFFF), ~0u);
  EXPECT_EQ(mask_below(0x7FFF'FFFF, 0), 0u);
  EXPECT_EQ(mask_equal(0xFFu, 0xFFu), ~0u);
  EXPECT_EQ(mask_equal(0xFFu, 0x7Fu), 0u);
  EXPECT_EQ(select(~0u, 3u, 4u), 3u);
  EXPECT_EQ(select(0u, 3u, 4u), 4u);
}

TEST(float_bits, treats_float_as_a_format_of_its_own) {
  static_assert(from_float<float>(1.25f) == 1.25f);
  static_assert(to_float(-1.25f) == -1.25f);
  static_assert(dtype_of<float> == dtype::f32);
  EXPECT_EQ(largest_finite<float>, std::numeric_limits<float>::max());
  EXPECT_EQ(bits_of(from_float<float>(float_of(0x7F80'0001u))), 0x7F80'0001u);  // NaN untouched
}

}  // namespace ferry
