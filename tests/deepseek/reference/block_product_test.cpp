// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/reference/block_product.hpp>

#include <ferry/deepseek/reference/act_quant.hpp>

#include "data/golden_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry::deepseek::reference {

template <class T>
static matrix<T const> view(ferry::testing::golden_tensor<T> const& tensor) {
  return dense(tensor.values.data(), tensor.shape[0], tensor.shape[1]);
}

template <class T>
static void multiplies_as_the_golden_values(std::string const& flavour) {
  ferry::testing::golden_file const golden("fp8/block_gemm.safetensors");
  auto const x = golden.tensor<float>("x");
  auto const xq = golden.tensor<T>(flavour + ".xq");
  auto const xs = golden.tensor<float>(flavour + ".xs");
  auto const wq = golden.tensor<T>(flavour + ".wq");
  auto const ws = golden.tensor<float>(flavour + ".ws");
  auto const expected = golden.tensor<double>(flavour + ".y_f64");

  std::size_t const columns = static_cast<std::size_t>(x.shape[1]);
  quantised_row<T> ours;  // all rows, one after the other: whole blocks only
  for (std::size_t row = 0; row < static_cast<std::size_t>(x.shape[0]); ++row) {
    auto const out = act_quant<T>(std::span(x.values).subspan(row * columns, columns));
    ours.codes.insert(ours.codes.end(), out.codes.begin(), out.codes.end());
    ours.scales.insert(ours.scales.end(), out.scales.begin(), out.scales.end());
  }
  ASSERT_EQ(ours.codes, xq.values);
  ASSERT_EQ(ours.scales, xs.values);

  auto const y = block_product<T>({view(xq), view(xs)}, {view(wq), view(ws)});
  ASSERT_EQ(y.size(), expected.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    ASSERT_NEAR(y[i], expected[i], 1e-12 * (1 + std::fabs(expected[i]))) << "element " << i;
}

TEST(reference_block_product, equals_the_golden_values_in_ocp) {
  multiplies_as_the_golden_values<e4m3>("e4m3fn");
}
TEST(reference_block_product, equals_the_golden_values_in_fnuz) {
  multiplies_as_the_golden_values<e4m3fnuz>("e4m3fnuz");
}

TEST(reference_block_product, takes_each_blocks_own_scales) {
  std::vector<e4m3> const ones(2 * 130, e4m3{0x38});  // two rows of 130 ones
  std::vector<float> const x_scales{1, 10, 100, 1000}, w_scales{2, 3};
  auto const y = block_product<e4m3>({dense(ones.data(), 2, 130), dense(x_scales.data(), 2, 2)},
                                     {dense(ones.data(), 2, 130), dense(w_scales.data(), 1, 2)});
  EXPECT_EQ(y, (std::vector<double>{316, 316, 31600, 31600}));
}

}  // namespace ferry::deepseek::reference
