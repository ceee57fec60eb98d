// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/number_formats.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>
#include <vector>

namespace ferry {

template <class T>
struct number_formats : public ::testing::Test {};
using formats = ::testing::Types<float, bf16, fp16, e4m3, e4m3fnuz, e8m0>;
TYPED_TEST_SUITE(number_formats, formats);

TYPED_TEST(number_formats, are_trivial_and_as_small_as_their_dtype) {
  static_assert(std::is_trivial_v<TypeParam> && std::is_standard_layout_v<TypeParam>);
  EXPECT_EQ(sizeof(TypeParam), bytes_of(dtype_of<TypeParam>));
  EXPECT_EQ(alignof(TypeParam), sizeof(TypeParam));
}

TYPED_TEST(number_formats, hold_powers_of_two_exactly_at_compile_time_too) {
  static_assert(to_float(from_float<TypeParam>(4.0f)) == 4.0f);
  static_assert(to_float(from_float<TypeParam>(0.25f)) == 0.25f);
  EXPECT_EQ(to_float(from_float<TypeParam>(1.0f)), 1.0f);
}

TYPED_TEST(number_formats, keep_their_largest_value_and_nan) {
  EXPECT_EQ(to_float(from_float<TypeParam>(largest_finite<TypeParam>)), largest_finite<TypeParam>);
  EXPECT_TRUE(is_nan(to_float(from_float<TypeParam>(NAN))));
}

TYPED_TEST(number_formats, never_order_values_the_other_way_round) {
  float last = to_float(from_float<TypeParam>(0.0f));
  for (float x = 1e-12f; x < 1e12f; x *= 1.37f) {
    float const value = to_float(from_float<TypeParam>(x));
    ASSERT_GE(value, last) << x;
    last = value;
  }
}

// Compilers turn such a loop into vector code: every lane must give what one element gives.
TYPED_TEST(number_formats, convert_in_a_loop_as_one_by_one) {
  std::vector<float> x(1021), back(1021);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = float_of(static_cast<std::uint32_t>(i * 2654435761u));
  std::vector<TypeParam> codes(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = from_float<TypeParam>(x[i]);
  for (std::size_t i = 0; i < x.size(); ++i) back[i] = to_float(codes[i]);
  for (std::size_t i = 0; i < x.size(); ++i) {
    float volatile one = x[i];
    ASSERT_EQ(bits_of(back[i]), bits_of(to_float(from_float<TypeParam>(one)))) << x[i];
  }
}

}  // namespace ferry
