// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rotary positions.
#pragma once

#include <ferry/exec/strip.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// Turns pair (2i, 2i+1) by the i-th angle: (a cos - b sin, a sin + b cos).
FERRY_FN void rotate_pair(float const* from, float const* angles, std::int64_t pairs,
                          std::int64_t i, float* to) {
  float const a = from[2 * i];
  float const b = from[2 * i + 1];
  to[2 * i] = a * angles[i] - b * angles[pairs + i];
  to[2 * i + 1] = a * angles[pairs + i] + b * angles[i];
}

/// Turns all pairs.
/// Shapes   from, to [2 * pairs], to may be from; angles [2 * pairs]: cosines, then sines
template <strip Strip>
FERRY_FN void rotate(Strip const& s, float const* from, float const* angles, std::int64_t pairs,
                     float* to) {
  s.for_each(pairs, [&](std::int64_t i) { rotate_pair(from, angles, pairs, i, to); });
}

/// Turns each head of each token by the token's position.
/// Shapes   angles [positions, dimensions], as `rope` has them
/// Units    strides in elements
struct rotate_heads {
  float const* from = nullptr;
  std::int64_t from_token = 0;  ///< from one token to the next
  std::int64_t from_head = 0;   ///< from one head to the next
  float* to = nullptr;
  std::int64_t to_token = 0;
  std::int64_t to_head = 0;
  std::int32_t const* positions = nullptr;  ///< per token; below 0: no token
  float const* angles = nullptr;
  int dimensions = 0;
  std::int64_t tokens = 0;
  int heads = 0;

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    for (std::int64_t item = s.index(); item < tokens * heads; item += s.count()) {
      std::int64_t const token = item / heads;
      std::int64_t const head = item % heads;
      if (positions[token] < 0) continue;
      rotate(s, from + token * from_token + head * from_head,
             angles + std::int64_t{positions[token]} * dimensions, dimensions / 2,
             to + token * to_token + head * to_head);
    }
  }
};

}  // namespace ferry::deepseek
