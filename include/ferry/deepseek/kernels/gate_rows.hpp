// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// SwiGLU of rows.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/deepseek/kernels/exponential.hpp>
#include <ferry/deepseek/kernels/rows_there.hpp>
#include <ferry/exec/strip.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// to = silu(gate) * up
/// Shapes   from [rows, 2 * width]: gate, then up; to [rows, width]
///          to may begin where from does if its stride is not larger and one strip does all: row r
///          is written at or before what is still to be read, 16 values after they are read
struct gate_rows {
  matrix<float const> from;
  matrix<float> to;
  std::int32_t const* end = nullptr;  ///< as decode_rows

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    std::int64_t const width = to.columns;
    auto const gated = [](float g, float u) { return g / (1.0F + exponential(-g)) * u; };
    for_each_piece(s, rows_there(from.rows, end), width,
                   [&](std::int64_t row, std::int64_t first, std::int64_t n) {
                     float const* const gate = from[row] + first;
                     float* const out = to[row] + first;
                     std::int64_t i = 0;
                     for (; i + strip_lanes <= n; i += strip_lanes) {
                       s.store(s.map(gated, s.load(gate + i), s.load(gate + width + i)), out + i);
                     }
                     s.for_each(n - i, [&](std::int64_t j) {
                       out[i + j] = gated(gate[i + j], gate[width + i + j]);
                     });
                   });
  }
};

}  // namespace ferry::deepseek
