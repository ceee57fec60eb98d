// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/reference/act_quant.hpp>

#include <ferry/base/block_scale.hpp>
#include <ferry/deepseek/reference/dequantise.hpp>

#include "data/golden_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace ferry::deepseek::reference {

template <class T>
static void quantises_as_the_golden_values(std::string const& name, scale_rule rule) {
  ferry::testing::golden_file const golden("fp8/act_quant_1x128.safetensors");
  auto const x = golden.tensor<float>("x");
  auto const codes = golden.tensor<T>(name + ".q");
  auto const scales = golden.tensor<float>(name + ".scale");
  auto const values = golden.tensor<float>(name + ".dequant");
  std::size_t const columns = static_cast<std::size_t>(x.shape[1]);
  std::size_t const blocks = columns / scale_block;
  for (std::size_t row = 0; row < static_cast<std::size_t>(x.shape[0]); ++row) {
    auto const out = act_quant<T>(std::span(x.values).subspan(row * columns, columns), rule);
    auto const back = dequantise_row<T>(out.codes, std::span<float const>(out.scales));
    ASSERT_EQ(out.codes.size(), columns);
    ASSERT_EQ(out.scales.size(), blocks);
    for (std::size_t i = 0; i < blocks; ++i)
      ASSERT_EQ(out.scales[i], scales[row * blocks + i])
          << "row " << row << " (" << golden.metadata("row" + std::to_string(row)) << ")";
    for (std::size_t i = 0; i < columns; ++i) {
      ASSERT_EQ(out.codes[i], codes[row * columns + i]) << "row " << row << " column " << i;
      ASSERT_EQ(back[i], values[row * columns + i]) << "row " << row << " column " << i;
    }
  }
}

TEST(reference_act_quant, equals_the_golden_values_in_ocp) {
  quantises_as_the_golden_values<e4m3>("e4m3fn", scale_rule::any);
}
TEST(reference_act_quant, equals_the_golden_values_in_fnuz) {
  quantises_as_the_golden_values<e4m3fnuz>("e4m3fnuz", scale_rule::any);
}
TEST(reference_act_quant, equals_the_golden_values_in_ocp_with_powers_of_two) {
  quantises_as_the_golden_values<e4m3>("e4m3fn_ue8m0", scale_rule::power_of_two);
}
TEST(reference_act_quant, equals_the_golden_values_in_fnuz_with_powers_of_two) {
  quantises_as_the_golden_values<e4m3fnuz>("e4m3fnuz_ue8m0", scale_rule::power_of_two);
}

TEST(reference_act_quant, finds_the_next_power_of_two) {
  EXPECT_EQ(next_power_of_two(1.0f), 1.0f);
  EXPECT_EQ(next_power_of_two(std::nextafter(1.0f, 2.0f)), 2.0f);
  EXPECT_EQ(next_power_of_two(std::nextafter(1.0f, 0.0f)), 1.0f);
  EXPECT_EQ(next_power_of_two(3e-7f), 0x1p-21f);
}

// Rows of every length around a block's, of every magnitude, some with numbers that are none.
static std::vector<std::vector<float>> random_rows() {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 1);
  std::vector<std::vector<float>> rows;
  for (int length : {0, 1, 3, 127, 128, 129, 255, 256, 300, 2880}) {
    for (int exponent : {-40, -14, -3, 0, 5, 40, 110}) {
      std::vector<float> row(static_cast<std::size_t>(length));
      for (float& x : row) x = std::ldexp(normal(random), exponent);
      rows.push_back(row);
      std::size_t const spoilt = row.size() / 2;
      for (float odd : {INFINITY, -INFINITY, NAN, -NAN, -0.0f, largest_finite<float>}) {
        if (row.empty()) continue;
        row[spoilt] = odd;
        rows.push_back(row);
      }
    }
  }
  return rows;
}

template <class T>
static void equals_the_arithmetic_of_the_kernels() {
  for (auto const& row : random_rows()) {
    auto const expected = act_quant<T>(row);
    ASSERT_EQ(expected.scales.size(), (row.size() + 127) / 128);
    for (std::size_t block = 0; block < expected.scales.size(); ++block) {
      std::size_t const first = block * scale_block;
      std::size_t const last = std::min(row.size(), first + scale_block);
      block_range range;
      for (std::size_t i = first; i < last; ++i) range.add(row[i]);
      float const scale = block_scale<T>(range);
      ASSERT_EQ(scale, expected.scales[block]);
      for (std::size_t i = first; i < last; ++i)
        ASSERT_EQ(quantise<T>(row[i], scale), expected.codes[i]) << row[i];
    }
  }
}

TEST(reference_act_quant, equals_the_arithmetic_of_the_kernels_in_ocp) {
  equals_the_arithmetic_of_the_kernels<e4m3>();
}
TEST(reference_act_quant, equals_the_arithmetic_of_the_kernels_in_fnuz) {
  equals_the_arithmetic_of_the_kernels<e4m3fnuz>();
}

TEST(reference_act_quant, equals_the_arithmetic_of_the_kernels_for_both_flavours) {
  for (auto const& row : random_rows()) {
    auto const expected = act_quant_for_both_flavours(row);
    for (std::size_t block = 0; block < expected.scales.size(); ++block) {
      std::size_t const first = block * scale_block;
      std::size_t const last = std::min(row.size(), first + scale_block);
      block_range range;
      for (std::size_t i = first; i < last; ++i) range.add(row[i]);
      e8m0 const scale = block_exponent(range);
      ASSERT_EQ(scale, expected.scales[block]);
      for (std::size_t i = first; i < last; ++i)
        ASSERT_EQ(quantise(row[i], scale), expected.codes[i]) << row[i];
    }
  }
}

TEST(reference_act_quant, gives_both_flavours_the_same_values) {
  for (auto const& row : random_rows()) {
    auto const out = act_quant_for_both_flavours(row);
    std::vector<e4m3fnuz> same_bits;
    for (e4m3 code : out.codes) same_bits.push_back({code.bits});
    std::vector<e8m0> doubled;
    for (e8m0 scale : out.scales) doubled.push_back(exponent_for_fnuz(scale));
    auto const ocp = dequantise_row<e4m3>(out.codes, std::span<e8m0 const>(out.scales));
    auto const fnuz = dequantise_row<e4m3fnuz>(same_bits, std::span<e8m0 const>(doubled));
    for (std::size_t i = 0; i < row.size(); ++i) {
      ASSERT_EQ(std::isnan(ocp[i]), std::isnan(fnuz[i])) << row[i];
      if (std::isnan(ocp[i])) continue;
      ASSERT_EQ(ocp[i], fnuz[i]) << row[i];
    }
  }
}

}  // namespace ferry::deepseek::reference
