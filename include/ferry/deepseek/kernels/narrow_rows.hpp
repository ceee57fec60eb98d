// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rows of f32 as bf16.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/number_formats.hpp>
#include <ferry/deepseek/kernels/rows_there.hpp>
#include <ferry/exec/strip.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// to = from, rounded to nearest
struct narrow_rows {
  matrix<float const> from;
  matrix<bf16> to;
  std::int32_t const* end = nullptr;  ///< as decode_rows

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    for_each_piece(s, rows_there(from.rows, end), from.columns,
                   [&](std::int64_t row, std::int64_t first, std::int64_t n) {
                     float const* const a = from[row] + first;
                     bf16* const b = to[row] + first;
                     s.for_each(n, [&](std::int64_t i) { b[i] = from_float<bf16>(a[i]); });
                   });
  }
};

}  // namespace ferry::deepseek
