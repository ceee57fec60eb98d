// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Inner products over strips.
#pragma once

#include <ferry/exec/strip.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// a . b
/// Order    lane i adds the products i, i + 16, ...; then the lanes are summed
template <strip Strip>
FERRY_FN float dot(Strip const& s, float const* a, float const* b, std::int64_t n) {
  auto total = s.fill(0);
  std::int64_t i = 0;
  for (; i + strip_lanes <= n; i += strip_lanes) total = total + s.load(a + i) * s.load(b + i);
  if (i < n) total = total + s.load_first(a + i, n - i, 0) * s.load_first(b + i, n - i, 0);
  return s.sum(total);
}

/// dot(a, b) for four rows b, `stride` apart, with the same bits; a is read once for all.
template <strip Strip>
FERRY_FN typename Strip::four dot_four(Strip const& s, float const* a, float const* b,
                                       std::int64_t stride, std::int64_t n) {
  auto t0 = s.fill(0);
  auto t1 = t0;
  auto t2 = t0;
  auto t3 = t0;
  std::int64_t i = 0;
  for (; i + strip_lanes <= n; i += strip_lanes) {
    auto const x = s.load(a + i);
    t0 = t0 + x * s.load(b + i);
    t1 = t1 + x * s.load(b + stride + i);
    t2 = t2 + x * s.load(b + 2 * stride + i);
    t3 = t3 + x * s.load(b + 3 * stride + i);
  }
  if (i < n) {
    auto const x = s.load_first(a + i, n - i, 0);
    t0 = t0 + x * s.load_first(b + i, n - i, 0);
    t1 = t1 + x * s.load_first(b + stride + i, n - i, 0);
    t2 = t2 + x * s.load_first(b + 2 * stride + i, n - i, 0);
    t3 = t3 + x * s.load_first(b + 3 * stride + i, n - i, 0);
  }
  return s.sum_four(t0, t1, t2, t3);
}

}  // namespace ferry::deepseek
