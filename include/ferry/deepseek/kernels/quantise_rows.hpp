// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rows as a product of fp8 would read them.
#pragma once

#include <ferry/base/block_scale.hpp>
#include <ferry/base/matrix.hpp>
#include <ferry/base/types.hpp>
#include <ferry/deepseek/kernels/rows_there.hpp>
#include <ferry/exec/strip.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// to = codes times scale, block by block of `scale_block` columns, in E4M3 with an f32 scale; to
/// may be from.
struct quantise_rows {
  matrix<float const> from;
  matrix<float> to;
  std::int32_t const* end = nullptr;  ///< as decode_rows

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    static_assert(Strip::columns_at_once % scale_block == 0, "a block lies with one strip");
    for_each_piece(s, rows_there(from.rows, end), from.columns,
                   [&](std::int64_t row, std::int64_t first, std::int64_t n) {
                     for (std::int64_t begin = 0; begin < n; begin += scale_block) {
                       std::int64_t const left = n - begin;
                       block(s, from[row] + first + begin, left < scale_block ? left : scale_block,
                             to[row] + first + begin);
                     }
                   });
  }

 private:
  template <strip Strip>
  FERRY_FN static void block(Strip const& s, float const* x, std::int64_t n, float* y) {
    block_range range;
    s.for_each(n, [&](std::int64_t i) { range.add(x[i]); });
    range.largest =
        s.merge(range.largest, [](std::int32_t a, std::int32_t b) { return b > a ? b : a; });
    range.has_nan = s.merge(range.has_nan, [](std::int32_t a, std::int32_t b) { return a | b; });
    float const scale = block_scale<e4m3>(range);
    s.for_each(n, [&](std::int64_t i) { y[i] = dequantise(quantise<e4m3>(x[i], scale), scale); });
  }
};

}  // namespace ferry::deepseek
