// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// RMS norm of rows.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/deepseek/kernels/dot.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// to = from / sqrt(mean(from^2) + epsilon) * weight; to may be from.
template <strip Strip>
FERRY_FN void normalise_row(Strip const& s, float const* from, float const* weight, float epsilon,
                            std::int64_t n, float* to) {
  float const mean = dot(s, from, from, n) / static_cast<float>(n);
  float const scale = 1.0F / __builtin_sqrtf(mean + epsilon);
  s.for_each(n, [&](std::int64_t i) { to[i] = from[i] * scale * weight[i]; });
}

/// The same for each row.
/// Shapes   from, to [rows, columns]; weight [columns]
struct normalise_rows {
  matrix<float const> from;
  float const* weight = nullptr;
  float epsilon = 0;
  matrix<float> to;

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    for (std::int64_t row = s.index(); row < from.rows; row += s.count()) {
      normalise_row(s, from[row], weight, epsilon, from.columns, to[row]);
    }
  }
};

}  // namespace ferry::deepseek
