// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The product of block-scaled fp8 activations and weights in f64: plain and slow.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/types.hpp>
#include <ferry/deepseek/reference/float8.hpp>

#include <cstdint>
#include <vector>

namespace ferry::deepseek::reference {

/// fp8 codes with their scales.
template <class T>
struct scaled_matrix {
  matrix<T const> codes;
  matrix<float const> scales;
};

/// y = x * w^T, every product of codes and scales exact but for f64's rounding.
/// Shapes   x.codes [m, k], x.scales [m, ceil(k / 128)], w.codes [n, k],
///          w.scales [ceil(n / 128), ceil(k / 128)], the result is dense [m, n]
template <class T>
std::vector<double> block_product(scaled_matrix<T> const& x, scaled_matrix<T> const& w) {
  std::vector<double> out;
  for (std::int64_t row = 0; row < x.codes.rows; ++row)
    for (std::int64_t column = 0; column < w.codes.rows; ++column) {
      double sum = 0;
      for (std::int64_t i = 0; i < x.codes.columns; ++i) {
        std::int64_t const block = i / scale_block;
        double const x_scale = x.scales[row][block];
        double const w_scale = w.scales[column / scale_block][block];
        sum += fp8_value(x.codes[row][i]) * x_scale * fp8_value(w.codes[column][i]) * w_scale;
      }
      out.push_back(sum);
    }
  return out;
}

}  // namespace ferry::deepseek::reference
