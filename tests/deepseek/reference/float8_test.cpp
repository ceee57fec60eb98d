// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/reference/float8.hpp>

#include "data/golden_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>

namespace ferry::deepseek::reference {

template <class T>
struct reference_float8 : public ::testing::Test {
  static std::string name() { return flavour_of<T>.fnuz ? "e4m3fnuz" : "e4m3fn"; }
};
using flavours = ::testing::Types<e4m3, e4m3fnuz>;
TYPED_TEST_SUITE(reference_float8, flavours);

TYPED_TEST(reference_float8, means_what_the_golden_table_says_for_all_256_codes) {
  auto const table =
      ferry::testing::golden_file("fp8/tables.safetensors").tensor<float>(TestFixture::name());
  for (std::uint32_t bits = 0; bits < 256; ++bits) {
    double const value = fp8_value(TypeParam{static_cast<std::uint8_t>(bits)});
    ASSERT_EQ(std::isnan(value), std::isnan(table[bits])) << "code " << bits;
    if (std::isnan(value)) continue;
    EXPECT_EQ(value, table[bits]) << "code " << bits;
    EXPECT_EQ(std::signbit(value), std::signbit(table[bits])) << "code " << bits;
  }
}

TYPED_TEST(reference_float8, encodes_as_the_golden_values) {
  ferry::testing::golden_file const golden("fp8/encode_" + TestFixture::name() + ".safetensors");
  auto const x = golden.tensor<float>("x");
  auto const codes = golden.tensor<TypeParam>("codes_saturate");
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(fp8_code<TypeParam>(x[i]), codes[i]) << "element " << i << " = " << x[i];
}

// Every 4099th f32, both signs, NaN and infinity too.
TYPED_TEST(reference_float8, agrees_with_the_fast_conversion_over_the_whole_range_of_f32) {
  for (std::uint64_t bits = 0; bits < 1ull << 32; bits += 4099) {
    float const x = float_of(static_cast<std::uint32_t>(bits));
    ASSERT_EQ(fp8_code<TypeParam>(x), from_float<TypeParam>(x)) << x;
  }
}

}  // namespace ferry::deepseek::reference
