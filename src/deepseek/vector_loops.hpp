// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Sums in an order that is written down, so that a compiler may use vectors of any width for them
/// and the result stays the same for every caller.
#pragma once

#include <cstdint>

namespace ferry::deepseek {

inline constexpr int sum_lanes = 16;

/// The sum of 16 partial sums, as a tree.
inline float sum_of_lanes(float (&lanes)[sum_lanes]) {
  for (int half = sum_lanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

/// a . b
inline float dot(float const* a, float const* b, std::int64_t n) {
  float lanes[sum_lanes] = {};
  std::int64_t i = 0;
  for (; i + sum_lanes <= n; i += sum_lanes) {
    for (int j = 0; j < sum_lanes; ++j) lanes[j] += a[i + j] * b[i + j];
  }
  for (int j = 0; i + j < n; ++j) lanes[j] += a[i + j] * b[i + j];
  return sum_of_lanes(lanes);
}

}  // namespace ferry::deepseek
