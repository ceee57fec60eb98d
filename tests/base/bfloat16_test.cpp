// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/bfloat16.hpp>

#include "data/golden_file.hpp"
#include "rounding_edges.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace ferry {

TEST(bfloat16, keeps_all_65536_codes) {
  for (std::uint32_t bits = 0; bits < 0x1'0000; ++bits) {
    bf16 const code{static_cast<std::uint16_t>(bits)};
    float const value = to_float(code);
    ASSERT_EQ(bits_of(value), bits << 16);
    std::uint32_t const expected = is_nan(value) ? bits | 0x40 : bits;
    ASSERT_EQ(from_float<bf16>(value).bits, expected) << "code " << bits;
  }
}

TEST(bfloat16, rounds_to_nearest_even_at_every_edge) {
  rounds_to_nearest_even_up_to<bf16>(0x7F7F);
}

TEST(bfloat16, overflows_to_infinity_from_half_a_step_beyond_the_largest) {
  EXPECT_EQ(from_float<bf16>(largest_finite<bf16>).bits, 0x7F7F);
  EXPECT_EQ(from_float<bf16>(float_of(0x7F7F'7FFF)).bits, 0x7F7F);
  EXPECT_EQ(from_float<bf16>(float_of(0x7F7F'8000)).bits, 0x7F80);
  EXPECT_EQ(from_float<bf16>(-std::numeric_limits<float>::max()).bits, 0xFF80);
  EXPECT_EQ(from_float<bf16>(INFINITY).bits, 0x7F80);
  EXPECT_EQ(from_float<bf16>(-INFINITY).bits, 0xFF80);
}

TEST(bfloat16, keeps_a_nan_whose_payload_lies_in_the_lost_half) {
  EXPECT_EQ(from_float<bf16>(float_of(0x7F80'0001)).bits, 0x7FC0);
  EXPECT_EQ(from_float<bf16>(float_of(0xFFFF'FFFF)).bits, 0xFFFF);
}

TEST(bfloat16, rounds_as_the_golden_values) {
  testing::golden_file const golden("fp8/bf16_round.safetensors");
  auto const x = golden.tensor<float>("x");
  auto const expected = golden.tensor<bf16>("bf16");
  ASSERT_EQ(x.size(), expected.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    bf16 const code = from_float<bf16>(x[i]);
    if (is_nan(to_float(expected[i])))
      EXPECT_TRUE(is_nan(to_float(code))) << "element " << i;
    else
      EXPECT_EQ(code.bits, expected[i].bits) << "element " << i << " = " << x[i];
  }
}

}  // namespace ferry
