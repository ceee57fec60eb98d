// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Softmax in place, over strips.
#pragma once

#include <ferry/deepseek/kernels/exponential.hpp>
#include <ferry/exec/strip.hpp>

#include <cstdint>

namespace ferry::deepseek {

inline constexpr float lowest = -__builtin_inff();

/// The largest of n values. NaN is never larger: without anything else, minus infinity.
template <strip Strip>
FERRY_FN float largest_of(Strip const& s, float const* values, std::int64_t n) {
  auto most = s.fill(lowest);
  std::int64_t i = 0;
  for (; i + strip_lanes <= n; i += strip_lanes) most = s.larger(s.load(values + i), most);
  if (i < n) most = s.larger(s.load_first(values + i, n - i, lowest), most);
  return s.largest(most);
}

/// The sum of n values, lane by lane and then over the lanes.
template <strip Strip>
FERRY_FN float total_of(Strip const& s, float const* values, std::int64_t n) {
  auto total = s.fill(0);
  std::int64_t i = 0;
  for (; i + strip_lanes <= n; i += strip_lanes) total = total + s.load(values + i);
  if (i < n) total = total + s.load_first(values + i, n - i, 0);
  return s.sum(total);
}

/// Scores become weights that sum to 1. A score that is NaN makes all of them NaN.
/// Order    afterwards a lane sees its own weights only (strip.hpp, for_each) until s.sync()
template <strip Strip>
FERRY_FN void softmax(Strip const& s, float* scores, std::int64_t n) {
  float const largest = largest_of(s, scores, n);
  s.for_each(n, [&](std::int64_t i) { scores[i] = exponential(scores[i] - largest); });
  float const inverse = 1.0F / total_of(s, scores, n);
  s.for_each(n, [&](std::int64_t i) { scores[i] *= inverse; });
}

}  // namespace ferry::deepseek
