// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/float8_codes.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace {

using namespace ferry;

std::uint32_t byte_of(std::uint32_t codes, int i) {
  return codes >> (8 * i) & 0xFFu;
}

template <class T>
void are_from_float(float a, float b, float c, float d) {
  std::uint32_t const codes = software_codes::of<T>(a, b, c, d);
  float const x[4] = {a, b, c, d};
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(byte_of(codes, i), from_float<T>(x[i]).bits) << x[i] << " at " << i;
}

TEST(float8_codes, are_those_of_from_float_in_the_order_of_memory) {
  are_from_float<e4m3>(1.0f, -2.0f, 448.0f, 1e9f);
  are_from_float<e4m3>(-0.0f, NAN, -NAN, -INFINITY);
  are_from_float<e4m3fnuz>(1.0f, -2.0f, 240.0f, 1e9f);
  are_from_float<e4m3fnuz>(-0.0f, NAN, -NAN, -INFINITY);
}

TEST(float8_codes, of_powers_are_what_quantise_makes) {
  e8m0 const scale{130};  // 2^3
  for (int i = -4000; i <= 4000; ++i) {
    float const x = static_cast<float>(i) * 0.9f;
    std::uint32_t const codes = software_codes::power(x / 8, -x / 8, 0.0f, -0.0f);
    ASSERT_EQ(codes & 0xFFu, quantise(x, scale).bits) << x;
    ASSERT_EQ(codes >> 8 & 0xFFu, quantise(-x, scale).bits) << -x;
    ASSERT_EQ(codes >> 16, 0u);
  }
  EXPECT_EQ(software_codes::power(INFINITY, -INFINITY, 1e-9f, -1e-9f), 0x0000FE7Eu);
}

TEST(float8_codes, lose_a_negative_zero_and_nothing_else) {
  for (std::uint32_t code = 0; code < 256; ++code)
    for (int at = 0; at < 4; ++at) {
      std::uint32_t const others = 0x7F01FF81u & ~(0xFFu << 8 * at);
      std::uint32_t const kept = code == 0x80 ? 0 : code;
      EXPECT_EQ(software_codes::without_negative_zero(others | code << 8 * at),
                others | kept << 8 * at);
    }
}

}  // namespace
