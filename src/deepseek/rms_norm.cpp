// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/rms_norm.hpp>

#include "deepseek/vector_loops.hpp"

#include <cmath>

namespace ferry::deepseek {

void rms_norm(matrix<float const> x, std::span<float const> weight, float epsilon,
              matrix<float> y) {
  std::int64_t const columns = x.columns;
  for (std::int64_t row = 0; row < x.rows; ++row) {
    float const* from = x[row];
    float* to = y[row];
    float const mean = dot(from, from, columns) / static_cast<float>(columns);
    float const scale = 1.0F / std::sqrt(mean + epsilon);
    for (std::int64_t i = 0; i < columns; ++i) to[i] = from[i] * scale * weight[i];
  }
}

}  // namespace ferry::deepseek
