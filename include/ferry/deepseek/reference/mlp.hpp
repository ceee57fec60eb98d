// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The gated feed-forward block in f64: plain and slow.
#pragma once

#include <ferry/deepseek/reference/product.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

namespace ferry::deepseek::reference {

struct mlp_weights {
  matrix<float const> gate;  ///< [width, hidden]
  matrix<float const> up;    ///< [width, hidden]
  matrix<float const> down;  ///< [hidden, width]
};

/// down(silu(gate(x)) * up(x)) of one row.
inline std::vector<double> mlp(mlp_weights const& w, std::vector<double> const& x) {
  std::vector<double> inner = product(w.gate, x);
  std::vector<double> const up = product(w.up, x);
  for (std::size_t i = 0; i < inner.size(); ++i) {
    inner[i] = inner[i] / (1 + std::exp(-inner[i])) * up[i];
  }
  return product(w.down, inner);
}

}  // namespace ferry::deepseek::reference
