// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/float16.hpp>

#include "rounding_edges.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace ferry {

static double value_by_definition(std::uint32_t bits) {
  int const exponent = static_cast<int>(bits >> 10 & 31);
  int const mantissa = static_cast<int>(bits & 1023);
  double const magnitude = exponent == 31  ? (mantissa ? NAN : INFINITY)
                           : exponent == 0 ? std::ldexp(mantissa, -24)
                                           : std::ldexp(1024 + mantissa, exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}

TEST(float16, means_what_ieee_says_for_all_65536_codes) {
  for (std::uint32_t bits = 0; bits < 0x1'0000; ++bits) {
    double const expected = value_by_definition(bits);
    float const value = to_float(fp16{static_cast<std::uint16_t>(bits)});
    ASSERT_EQ(std::isnan(value), std::isnan(expected)) << "code " << bits;
    ASSERT_EQ(std::signbit(value), bits >> 15 != 0) << "code " << bits;
    if (std::isnan(expected)) continue;
    ASSERT_EQ(value, expected) << "code " << bits;
  }
}

TEST(float16, keeps_all_65536_codes) {
  for (std::uint32_t bits = 0; bits < 0x1'0000; ++bits) {
    float const value = to_float(fp16{static_cast<std::uint16_t>(bits)});
    std::uint32_t const expected = is_nan(value) ? bits | 0x200 : bits;
    ASSERT_EQ(from_float<fp16>(value).bits, expected) << "code " << bits;
  }
}

TEST(float16, rounds_to_nearest_even_at_every_edge) {
  rounds_to_nearest_even_up_to<fp16>(0x7BFF);
}

TEST(float16, overflows_to_infinity_from_half_a_step_beyond_the_largest) {
  EXPECT_EQ(from_float<fp16>(65504.0f).bits, 0x7BFF);
  EXPECT_EQ(from_float<fp16>(std::nextafter(65520.0f, 0.0f)).bits, 0x7BFF);
  EXPECT_EQ(from_float<fp16>(65520.0f).bits, 0x7C00);
  EXPECT_EQ(from_float<fp16>(-1e30f).bits, 0xFC00);
  EXPECT_EQ(from_float<fp16>(largest_finite<float>).bits, 0x7C00);
  EXPECT_EQ(from_float<fp16>(INFINITY).bits, 0x7C00);
  EXPECT_EQ(from_float<fp16>(-INFINITY).bits, 0xFC00);
}

TEST(float16, loses_what_is_below_half_of_its_smallest_step) {
  EXPECT_EQ(from_float<fp16>(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(from_float<fp16>(-0x1p-25f).bits, 0x8000);
  EXPECT_EQ(from_float<fp16>(std::nextafter(0x1p-25f, 1.0f)).bits, 0x0001);
  EXPECT_EQ(from_float<fp16>(float_of(1)).bits, 0x0000);
}

TEST(float16, keeps_a_nan_whose_payload_lies_in_the_lost_bits) {
  EXPECT_EQ(from_float<fp16>(float_of(0x7F80'0001)).bits, 0x7E00);
  EXPECT_EQ(from_float<fp16>(float_of(0xFFFF'FFFF)).bits, 0xFFFF);
}

// Which of the two branch-free paths an element takes must not depend on its neighbours.
TEST(float16, gives_the_same_codes_in_a_loop_as_alone) {
  std::uint16_t together[0x400];
  float x[0x400];
  for (std::uint32_t i = 0; i < 0x400; ++i) x[i] = float_of(i * 0x40'1003u);
  for (std::uint32_t i = 0; i < 0x400; ++i) together[i] = from_float<fp16>(x[i]).bits;
  for (std::uint32_t i = 0; i < 0x400; ++i) {
    float volatile one = x[i];
    ASSERT_EQ(together[i], from_float<fp16>(one).bits) << x[i];
  }
}

}  // namespace ferry
