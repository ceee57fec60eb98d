// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rows of any wire format as f32: what arrived, or a table of embeddings.
#pragma once

#include <ferry/base/block_scale.hpp>
#include <ferry/base/matrix.hpp>
#include <ferry/base/number_formats.hpp>
#include <ferry/base/types.hpp>
#include <ferry/deepseek/kernels/rows_there.hpp>
#include <ferry/exec/strip.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::deepseek {

/// to[r] = row r of `rows`, or row index[r] where there is an index; a row whose index is below 0
/// is left alone. Rows and scales may lie at any byte.
/// Shapes   to [rows, columns]; end, if not null, is one number in device memory: rows at and
///          after it are left alone
/// Units    strides in bytes
struct decode_rows {
  wire format = wire::f32;  ///< not opaque: refused where experts are made
  bool fnuz = false;        ///< fp8_ue8m0: the codes are FNUZ, the scales for these
  std::byte const* rows = nullptr;
  std::int64_t row_stride = 0;
  std::byte const* scales = nullptr;  ///< of fp8 rows
  std::int64_t scale_stride = 0;
  std::int32_t const* index = nullptr;
  std::int32_t const* end = nullptr;
  matrix<float> to;

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    switch (format) {
      case wire::f32: return plain<float>(s);
      case wire::bf16: return plain<bf16>(s);
      case wire::fp16: return plain<fp16>(s);
      case wire::fp8_e4m3: return blocks<e4m3, float>(s);
      case wire::fp8_e4m3fnuz: return blocks<e4m3fnuz, float>(s);
      case wire::fp8_ue8m0: return fnuz ? blocks<e4m3fnuz, e8m0>(s) : blocks<e4m3, e8m0>(s);
      case wire::opaque: break;
    }
  }

 private:
  template <class T>
  FERRY_FN static T read(std::byte const* at, std::int64_t i) {
    T value;
    __builtin_memcpy(&value, at + i * static_cast<std::int64_t>(sizeof value), sizeof value);
    return value;
  }

  /// Calls f(row of the source, first, n, out) for the pieces of the rows that are there.
  template <strip Strip, class F>
  FERRY_FN void for_each_source(Strip const& s, F const& f) const {
    std::int64_t const there = rows_there(to.rows, end);
    for_each_piece(s, there, to.columns, [&](std::int64_t row, std::int64_t first, std::int64_t n) {
      std::int64_t const source = index != nullptr ? index[row] : row;
      if (source >= 0) f(source, first, n, to[row] + first);
    });
  }

  template <class T, strip Strip>
  FERRY_FN void plain(Strip const& s) const {
    for_each_source(s, [&](std::int64_t row, std::int64_t first, std::int64_t n, float* out) {
      std::byte const* const at =
          rows + row * row_stride + first * static_cast<std::int64_t>(sizeof(T));
      s.for_each(n, [&](std::int64_t i) { out[i] = to_float(read<T>(at, i)); });
    });
  }

  template <class T, class Scale, strip Strip>
  FERRY_FN void blocks(Strip const& s) const {
    static_assert(Strip::columns_at_once % scale_block == 0, "a block lies with one strip");
    for_each_source(s, [&](std::int64_t row, std::int64_t first, std::int64_t n, float* out) {
      for (std::int64_t begin = 0; begin < n; begin += scale_block) {
        std::int64_t const left = n - begin;
        std::byte const* const at = rows + row * row_stride + first + begin;
        float* const block = out + begin;
        float const scale =
            to_float(read<Scale>(scales + row * scale_stride, (first + begin) / scale_block));
        s.for_each(left < scale_block ? left : scale_block,
                   [&](std::int64_t i) { block[i] = dequantise(read<T>(at, i), scale); });
      }
    });
  }
};

}  // namespace ferry::deepseek
