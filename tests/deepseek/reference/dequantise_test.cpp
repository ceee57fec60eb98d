// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/reference/dequantise.hpp>

#include <ferry/base/block_scale.hpp>

#include "data/golden_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry::deepseek::reference {

// The golden file holds the values in bf16, rounded from f32.
template <class T>
static void dequantises_as_the_golden_values(std::string const& flavour) {
  ferry::testing::golden_file const golden("fp8/weight_dequant_128x128.safetensors");
  auto const codes = golden.tensor<T>("codes");
  auto const scales = golden.tensor<float>("scale_inv");
  auto const expected = golden.tensor<bf16>(flavour + ".dequant_bf16");
  auto const values =
      dequantise_weights<T>(dense(codes.values.data(), codes.shape[0], codes.shape[1]),
                            dense(scales.values.data(), scales.shape[0], scales.shape[1]));
  ASSERT_EQ(values.size(), expected.size());
  ASSERT_EQ(codes.shape[0] % scale_block, 64);  // a partial block is among them
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(is_nan(values[i]), is_nan(to_float(expected[i]))) << "element " << i;
    if (is_nan(values[i])) continue;
    ASSERT_EQ(from_float<bf16>(values[i]), expected[i]) << "element " << i;
    std::size_t const row = i / 256, column = i % 256;
    float const scale = scales[row / scale_block * 2 + column / scale_block];
    ASSERT_EQ(values[i], dequantise(codes[i], scale)) << "element " << i;
  }
}

TEST(reference_dequantise, equals_the_golden_weights_in_ocp) {
  dequantises_as_the_golden_values<e4m3>("e4m3fn");
}
TEST(reference_dequantise, equals_the_golden_weights_in_fnuz) {
  dequantises_as_the_golden_values<e4m3fnuz>("e4m3fnuz");
}

TEST(reference_dequantise, changes_the_scale_after_128_columns) {
  std::vector<e4m3> const codes(130, e4m3{0x38});  // 1
  std::vector<float> const scales{3.0f, 5.0f};
  auto const values = dequantise_row<e4m3>(codes, std::span<float const>(scales));
  EXPECT_EQ(values[127], 3.0f);
  EXPECT_EQ(values[128], 5.0f);
  EXPECT_EQ(values[129], 5.0f);
}

TEST(reference_dequantise, reads_powers_of_two_and_spreads_nan) {
  std::vector<e4m3> const codes(130, e4m3{0x38});
  std::vector<e8m0> const scales{e8m0{0}, e8m0{0xFF}};
  auto const values = dequantise_row<e4m3>(codes, std::span<e8m0 const>(scales));
  EXPECT_EQ(values[0], 0x1p-127f);
  EXPECT_TRUE(is_nan(values[128]));
  EXPECT_TRUE(is_nan(values[129]));
}

}  // namespace ferry::deepseek::reference
