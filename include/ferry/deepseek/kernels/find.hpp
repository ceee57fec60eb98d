// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Looking for values over strips.
#pragma once

#include <ferry/deepseek/kernels/softmax.hpp>
#include <ferry/exec/strip.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// The lowest i with values[i] == x, n if there is none.
template <strip Strip>
FERRY_FN std::int64_t find_first(Strip const& s, float const* values, std::int64_t n, float x) {
  std::int64_t i = 0;
  for (; i + strip_lanes <= n; i += strip_lanes) {
    int const lane = s.first_equal(s.load(values + i), x);
    if (lane < strip_lanes) return i + lane;
  }
  if (i == n) return n;
  int const lane = s.first_equal(s.load_first(values + i, n - i, __builtin_nanf("")), x);
  return lane < strip_lanes ? i + lane : n;
}

/// The lowest i whose value is the largest, n if all are NaN.
template <strip Strip>
FERRY_FN std::int64_t find_largest(Strip const& s, float const* values, std::int64_t n) {
  return find_first(s, values, n, largest_of(s, values, n));
}

}  // namespace ferry::deepseek
