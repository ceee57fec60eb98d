// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Root-mean-square normalisation in f64: plain and slow.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace ferry::deepseek::reference {

/// x / sqrt(mean(x^2) + epsilon) * weight
inline std::vector<double> rms_norm(std::vector<double> x, std::span<float const> weight,
                                    double epsilon) {
  double squares = 0;
  for (double v : x) squares += v * v;
  double const root = std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = x[i] / root * double{weight[i]};
  return x;
}

}  // namespace ferry::deepseek::reference
