// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Matrix products in f64: plain and slow.
#pragma once

#include <ferry/base/matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::deepseek::reference {

/// Rows of f64, for the oracles.
using table = std::vector<std::vector<double>>;

inline table to_table(matrix<float const> m) {
  table t;
  for (std::int64_t row = 0; row < m.rows; ++row) t.emplace_back(m[row], m[row] + m.columns);
  return t;
}

/// x W^T of one row. Shapes: weights [out, in], x [in]
inline std::vector<double> product(matrix<float const> weights, std::vector<double> const& x) {
  std::vector<double> y;
  for (std::int64_t row = 0; row < weights.rows; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * double{weights[row][i]};
    y.push_back(sum);
  }
  return y;
}

inline table product(matrix<float const> weights, table const& x) {
  table y;
  for (auto const& row : x) y.push_back(product(weights, row));
  return y;
}

}  // namespace ferry::deepseek::reference
