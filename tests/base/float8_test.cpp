// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/float8.hpp>

#include "data/golden_file.hpp"
#include "rounding_edges.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

namespace ferry {

template <class T>
struct float8 : public ::testing::Test {
  static std::string name() { return dtype_of<T> == dtype::e4m3 ? "e4m3fn" : "e4m3fnuz"; }
  static T code(std::uint32_t bits) { return {static_cast<std::uint8_t>(bits)}; }
};
using flavours = ::testing::Types<e4m3, e4m3fnuz>;
TYPED_TEST_SUITE(float8, flavours);

TYPED_TEST(float8, means_what_the_golden_table_says_for_all_256_codes) {
  auto const table =
      testing::golden_file("fp8/tables.safetensors").tensor<float>(TestFixture::name());
  ASSERT_EQ(table.size(), 256u);
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    float const value = to_float(TestFixture::code(bits));
    if (is_nan(table[bits]))
      EXPECT_TRUE(is_nan(value)) << "code " << bits;
    else
      EXPECT_EQ(bits_of(value), bits_of(table[bits])) << "code " << bits;
  }
}

TYPED_TEST(float8, keeps_all_256_codes) {
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    TypeParam const code = TestFixture::code(bits);
    EXPECT_EQ(from_float<TypeParam>(to_float(code)), code) << "code " << bits;
    EXPECT_EQ(from_float_or_nan<TypeParam>(to_float(code)), code) << "code " << bits;
  }
}

TYPED_TEST(float8, rounds_to_nearest_even_at_every_edge) {
  rounds_to_nearest_even_up_to<TypeParam>(TypeParam::largest_code);
}

TYPED_TEST(float8, encodes_as_the_golden_values) {
  testing::golden_file const golden("fp8/encode_" + TestFixture::name() + ".safetensors");
  auto const x = golden.tensor<float>("x");
  auto const saturated = golden.tensor<TypeParam>("codes_saturate");
  auto const or_nan = golden.tensor<TypeParam>("codes_nonsaturate");
  ASSERT_GT(x.size(), 3000u);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(from_float<TypeParam>(x[i]), saturated[i]) << "element " << i << " = " << x[i];
    EXPECT_EQ(from_float_or_nan<TypeParam>(x[i]), or_nan[i]) << "element " << i << " = " << x[i];
  }
}

TYPED_TEST(float8, saturates_beyond_the_largest_value) {
  TypeParam const largest = TestFixture::code(TypeParam::largest_code);
  TypeParam const lowest = TestFixture::code(TypeParam::largest_code | 0x80);
  EXPECT_EQ(to_float(largest), largest_finite<TypeParam>);
  for (float x : {largest_finite<TypeParam>, 1e4f, largest_finite<float>, INFINITY}) {
    EXPECT_EQ(from_float<TypeParam>(x), largest) << x;
    EXPECT_EQ(from_float<TypeParam>(-x), lowest) << x;
  }
}

TYPED_TEST(float8, gives_nan_beyond_the_largest_value_where_asked) {
  for (float x : {1e4f, largest_finite<float>, INFINITY}) {
    EXPECT_TRUE(is_nan(to_float(from_float_or_nan<TypeParam>(x)))) << x;
    EXPECT_TRUE(is_nan(to_float(from_float_or_nan<TypeParam>(-x)))) << x;
  }
}

TEST(float8_e4m3, rounds_past_the_largest_value_to_nan_only_from_the_midpoint_on) {
  EXPECT_EQ(from_float_or_nan<e4m3>(464.0f).bits, 0x7E);  // the tie goes to 448, which is even
  EXPECT_EQ(from_float_or_nan<e4m3>(std::nextafter(464.0f, 500.0f)).bits, 0x7F);
  EXPECT_EQ(from_float_or_nan<e4m3>(-INFINITY).bits, 0xFF);
}

TEST(float8_e4m3fnuz, rounds_past_the_largest_value_to_nan_only_from_the_midpoint_on) {
  EXPECT_EQ(from_float_or_nan<e4m3fnuz>(std::nextafter(248.0f, 0.0f)).bits, 0x7F);
  EXPECT_EQ(from_float_or_nan<e4m3fnuz>(248.0f).bits, 0x80);  // 240 is odd
  EXPECT_EQ(from_float_or_nan<e4m3fnuz>(-INFINITY).bits, 0x80);
}

TEST(float8_e4m3, keeps_the_sign_of_nan_and_zero) {
  EXPECT_EQ(from_float<e4m3>(NAN).bits, 0x7F);
  EXPECT_EQ(from_float<e4m3>(-NAN).bits, 0xFF);
  EXPECT_EQ(from_float<e4m3>(-0.0f).bits, 0x80);
  EXPECT_EQ(from_float<e4m3>(-1e-20f).bits, 0x80);
}

TEST(float8_e4m3fnuz, has_one_nan_and_one_zero) {
  EXPECT_EQ(from_float<e4m3fnuz>(NAN).bits, 0x80);
  EXPECT_EQ(from_float<e4m3fnuz>(-NAN).bits, 0x80);
  EXPECT_EQ(from_float<e4m3fnuz>(-0.0f).bits, 0x00);
  EXPECT_EQ(from_float<e4m3fnuz>(-1e-20f).bits, 0x00);
  EXPECT_EQ(from_float<e4m3fnuz>(-0x1p-11f).bits, 0x00);  // half of the smallest step
}

TEST(float8_e4m3, means_half_as_much_in_fnuz_for_all_256_codes) {
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    e4m3 const code{static_cast<std::uint8_t>(bits)};
    float const half = to_float(half_in_fnuz(code));
    if (is_nan(to_float(code)))
      EXPECT_TRUE(is_nan(half)) << "code " << bits;
    else
      EXPECT_EQ(2 * half, to_float(code)) << "code " << bits;
  }
}

}  // namespace ferry
