// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Adding rows to rows.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/exec/strip.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// to += from
struct add_rows {
  matrix<float const> from;
  matrix<float> to;

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    for_each_piece(s, from.rows, from.columns,
                   [&](std::int64_t row, std::int64_t first, std::int64_t n) {
                     float const* const a = from[row] + first;
                     float* const b = to[row] + first;
                     s.for_each(n, [&](std::int64_t i) { b[i] += a[i]; });
                   });
  }
};

}  // namespace ferry::deepseek
