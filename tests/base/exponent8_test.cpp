// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/exponent8.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace ferry {

static e8m0 code(int bits) {
  return {static_cast<std::uint8_t>(bits)};
}

TEST(exponent8, means_a_power_of_two_for_each_code_but_the_last) {
  for (int bits = 0; bits < 255; ++bits)
    EXPECT_EQ(to_float(code(bits)), std::ldexp(1.0f, bits - 127)) << "code " << bits;
  EXPECT_TRUE(is_nan(to_float(code(255))));
  EXPECT_EQ(largest_finite<e8m0>, to_float(code(254)));
}

TEST(exponent8, keeps_all_256_codes) {
  for (int bits = 0; bits < 256; ++bits)
    EXPECT_EQ(from_float<e8m0>(to_float(code(bits))), code(bits)) << "code " << bits;
}

TEST(exponent8, rounds_up_to_the_next_power_of_two) {
  for (int bits = 0; bits < 254; ++bits) {
    float const power = to_float(code(bits));
    EXPECT_EQ(from_float<e8m0>(std::nextafter(power, INFINITY)), code(bits + 1)) << bits;
    EXPECT_EQ(from_float<e8m0>(std::nextafter(2 * power, 0.0f)), code(bits + 1)) << bits;
  }
}

TEST(exponent8, saturates_at_both_ends) {
  EXPECT_EQ(from_float<e8m0>(0.0f), code(0));
  EXPECT_EQ(from_float<e8m0>(-0.0f), code(0));
  EXPECT_EQ(from_float<e8m0>(float_of(1)), code(0));  // the smallest subnormal
  EXPECT_EQ(from_float<e8m0>(std::nextafter(0x1p127f, INFINITY)), code(254));
  EXPECT_EQ(from_float<e8m0>(largest_finite<float>), code(254));
  EXPECT_EQ(from_float<e8m0>(INFINITY), code(254));
}

TEST(exponent8, has_no_code_for_nan_and_numbers_below_zero_but_nan) {
  EXPECT_EQ(from_float<e8m0>(NAN), code(255));
  EXPECT_EQ(from_float<e8m0>(-NAN), code(255));
  EXPECT_EQ(from_float<e8m0>(-1.0f), code(255));
  EXPECT_EQ(from_float<e8m0>(-INFINITY), code(255));
}

}  // namespace ferry
