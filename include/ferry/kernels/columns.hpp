// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Pieces of a row as f32 in a lane's hands: loading, adding, storing, quantising.
///
/// A row is worked through in tiles of `Team::lanes * Team::columns` elements; each lane holds
/// `Team::columns` consecutive ones. Full pieces run loops of constant length, which become vector
/// code on every device.
#pragma once

#include <ferry/base/block_scale.hpp>
#include <ferry/base/number_formats.hpp>
#include <ferry/exec/team.hpp>

#include <cstddef>
#include <type_traits>

namespace ferry {

/// Calls f(column, n) for each tile: this lane's first column and how many of its elements exist (0
/// past the row's end). Every lane makes the same number of calls, so f may vote.
template <team Team, class F>
FERRY_FN void for_each_tile(Team const& t, int hidden, F&& f) {
  constexpr int width = Team::columns;
  for (int tile = 0; tile < hidden; tile += width * Team::lanes) {
    int const column = tile + t.lane() * width;
    int const left = hidden - column;
    f(column, left < 0 ? 0 : left < width ? left : width);
  }
}

/// Calls f(T{}) with the element type that `type` names: float, bf16 or fp16.
template <class F>
FERRY_FN void visit_float_type(dtype type, F&& f) {
  switch (type) {
    case dtype::f32: return f(float{});
    case dtype::bf16: return f(bf16{});
    default: return f(fp16{});
  }
}

/// v[i] = element i of n, the rest 0.
template <class T, int N>
FERRY_FN void load_columns(std::byte const* row, int column, int n, float (&v)[N]) {
  T const* const from = reinterpret_cast<T const*>(row) + column;
  if (n == N) {
    for (int i = 0; i < N; ++i) v[i] = to_float(from[i]);
  } else {
    for (int i = 0; i < N; ++i) v[i] = i < n ? to_float(from[i]) : 0.0f;
  }
}

/// to[i] = f(v[i]) for the first n. What a lane of many holds is short enough to be spelled out: no
/// register can be chosen by a running number.
template <class V, int N, class T, class F>
FERRY_FN void store_first(int n, V const (&v)[N], T* to, F const& f) {
  if constexpr (N > 32) {
    for (int i = 0; i < n; ++i) to[i] = f(v[i]);
  } else {
    FERRY_UNROLL
    for (int i = 0; i < N; ++i)
      if (i < n) to[i] = f(v[i]);
  }
}

template <class T, int N>
FERRY_FN void store_columns(std::byte* row, int column, int n, float const (&v)[N]) {
  T* const to = reinterpret_cast<T*>(row) + column;
  if (n == N) {
    for (int i = 0; i < N; ++i) to[i] = from_float<T>(v[i]);
  } else {
    store_first(n, v, to, [](float x) FERRY_INLINED { return from_float<T>(x); });
  }
}

/// sum[i] += weight * v[i], each in one rounding.
template <int N>
FERRY_FN void add_columns(float weight, float const (&v)[N], float (&sum)[N]) {
  for (int i = 0; i < N; ++i) sum[i] = __builtin_fmaf(weight, v[i], sum[i]);
}

/// sum[i] += weight * element i of n, each in one rounding: the two above in one pass, so that the
/// numbers never leave the registers between them.
template <class T, int N>
FERRY_FN void add_row_columns(std::byte const* row, int column, int n, float weight,
                              float (&sum)[N]) {
  T const* const from = reinterpret_cast<T const*>(row) + column;
  if (n == N) {
    for (int i = 0; i < N; ++i) sum[i] = __builtin_fmaf(weight, to_float(from[i]), sum[i]);
  } else {
    // Counted to N: a sum that is indexed by what only the run knows would leave its registers.
    for (int i = 0; i < N; ++i)
      if (i < n) sum[i] = __builtin_fmaf(weight, to_float(from[i]), sum[i]);
  }
}

/// Where a row and its scales lie. `fnuz_scales`: e8m0 scales as a FNUZ receiver takes them; may be
/// null where nobody does.
struct row_place {
  std::byte* row;
  std::byte* scales;
  std::byte* fnuz_scales;
};

/// The part of a lane's columns that falls into one scale block, and how many lanes share a block.
template <team Team>
struct block_split {
  static constexpr int in_lane = Team::columns < scale_block ? Team::columns : scale_block;
  static constexpr int lanes = scale_block / in_lane;
  static_assert(Team::columns % in_lane == 0 && Team::lanes % lanes == 0);
};

/// What `range` is over the lanes that share this block.
template <team Team>
FERRY_FN block_range range_over_lanes(Team const& t, block_range range) {
  if constexpr (block_split<Team>::lanes > 1) {
    // Bits of non-negative floats order as the floats do.
    float const amax = t.template max_over<block_split<Team>::lanes>(range.amax());
    float const nan =
        t.template max_over<block_split<Team>::lanes>(static_cast<float>(range.has_nan));
    range.largest = static_cast<std::int32_t>(bits_of(amax));
    range.has_nan = nan > 0.0f;
  }
  return range;
}

/// fp8 codes with an f32 scale per block.
template <class T>
struct f32_scaled {
  using code = T;
  using scale = float;
  FERRY_FN static scale scale_of(block_range range) { return block_scale<T>(range); }
  FERRY_FN static code code_of(float x, scale s) { return quantise<T>(x, s); }
  FERRY_FN static std::uint32_t finite_bits(float x, scale s) { return finite_code_bits<T>(x, s); }
};

/// fp8 codes that serve both flavours, with a power-of-two scale per block.
struct power_scaled {
  using code = e4m3;
  using scale = e8m0;
  FERRY_FN static scale scale_of(block_range range) { return block_exponent(range); }
  FERRY_FN static code code_of(float x, scale s) { return quantise(x, s); }
  FERRY_FN static std::uint32_t finite_bits(float x, scale s) { return finite_code_bits(x, s); }
};

/// The same formats, four codes at a time by a team's own means (`Team::codes`).
template <class T, class Codes>
struct f32_scaled_codes {
  using scale = float;
  static constexpr bool differs_by_flavour = false;
  /// What counts of an element's magnitude_bits() when a block's largest is sought, and the scale
  /// that the largest gives. Here only what is finite does.
  FERRY_FN static std::uint32_t counted(std::uint32_t magnitude) {
    return magnitude < f32_infinity ? magnitude : 0;
  }
  FERRY_FN static scale scale_of(float largest) { return block_scale<T>(largest); }
  FERRY_FN static std::uint32_t codes(float a, float b, float c, float d, scale s) {
    return Codes::template of<T>(a / s, b / s, c / s, d / s);
  }
  /// What a receiver of either flavour finds as the scale.
  FERRY_FN static std::uint32_t bits(scale s, bool) { return bits_of(s); }
};
template <class Codes>
using e4m3_codes = f32_scaled_codes<e4m3, Codes>;
template <class Codes>
using e4m3fnuz_codes = f32_scaled_codes<e4m3fnuz, Codes>;

template <class Codes>
struct power_scaled_codes {
  using scale = e8m0;
  static constexpr bool differs_by_flavour = true;
  // A NaN anywhere decides alone, so it stands above all that is finite, where infinity would.
  FERRY_FN static std::uint32_t counted(std::uint32_t magnitude) {
    return magnitude > f32_infinity ? f32_infinity : magnitude == f32_infinity ? 0 : magnitude;
  }
  FERRY_FN static scale scale_of(float largest) {
    bool const has_nan = bits_of(largest) == f32_infinity;
    return block_exponent({has_nan ? 0 : magnitude_bits(largest), has_nan});
  }
  FERRY_FN static std::uint32_t codes(float a, float b, float c, float d, scale s) {
    std::uint32_t const bits = s.bits;
    float const reciprocal = float_of(bits == 0xFF ? 0u : (254u - bits) << 23);
    std::uint32_t const all =
        Codes::power(a * reciprocal, b * reciprocal, c * reciprocal, d * reciprocal);
    return bits == 0xFF ? 0u : all;
  }
  FERRY_FN static std::uint8_t bits(scale s, bool fnuz) {
    return fnuz ? exponent_for_fnuz(s).bits : s.bits;
  }
};

/// Stores a tile as codes and scales of `Format`. Every lane of the team calls it.
template <class Format, team Team>
FERRY_FN void store_blocks(Team const& t, row_place to, int column, int n,
                           float const (&v)[Team::columns]) {
  constexpr int in_lane = block_split<Team>::in_lane;
  using code = typename Format::code;
  using scale = typename Format::scale;
  for (int first = 0; first < Team::columns; first += in_lane) {
    // Nearly every block is finite, and cheaper for it.
    block_range range;
    for (int i = 0; i < in_lane; ++i) range.add_finite(v[first + i]);
    bool const finite = range.is_finite();
    if (!finite) {
      range = {};
      for (int i = 0; i < in_lane; ++i) range.add(v[first + i]);
    }
    range = range_over_lanes(t, range);
    scale const s = Format::scale_of(range);
    std::uint32_t bits[in_lane];
    if (finite && !range.has_nan) {
      for (int i = 0; i < in_lane; ++i) bits[i] = Format::finite_bits(v[first + i], s);
    } else {
      for (int i = 0; i < in_lane; ++i) bits[i] = Format::code_of(v[first + i], s).bits;
    }
    code* const row = reinterpret_cast<code*>(to.row) + column + first;
    int const here = n - first;
    if (here >= in_lane) {
      for (int i = 0; i < in_lane; ++i) row[i] = {static_cast<std::uint8_t>(bits[i])};
    } else {
      store_first(here, bits, row,
                  [](std::uint32_t b) FERRY_INLINED { return code{static_cast<std::uint8_t>(b)}; });
    }
    if (here <= 0 || (column + first) % scale_block != 0) continue;
    int const block = (column + first) / scale_block;
    reinterpret_cast<scale*>(to.scales)[block] = s;
    if constexpr (std::is_same_v<scale, e8m0>)
      if (to.fnuz_scales) reinterpret_cast<e8m0*>(to.fnuz_scales)[block] = exponent_for_fnuz(s);
  }
}

/// A tile of T codes with f32 scales, as f32.
template <class T, int N>
FERRY_FN void load_fp8(std::byte const* row, std::byte const* scales, int column, int n,
                       float (&v)[N]) {
  load_columns<T>(row, column, n, v);
  constexpr int in_lane = N < scale_block ? N : scale_block;
  for (int first = 0; first < N; first += in_lane) {
    if (first >= n) break;
    float const scale = reinterpret_cast<float const*>(scales)[(column + first) / scale_block];
    for (int i = 0; i < in_lane; ++i) v[first + i] *= scale;
  }
}

/// Stores a tile in the format that `to_wire` names. Every lane of the team calls it.
template <team Team>
FERRY_FN void store_wire(Team const& t, wire to_wire, row_place to, int column, int n,
                         float const (&v)[Team::columns]) {
  switch (to_wire) {
    case wire::f32: return store_columns<float>(to.row, column, n, v);
    case wire::bf16: return store_columns<bf16>(to.row, column, n, v);
    case wire::fp16: return store_columns<fp16>(to.row, column, n, v);
    case wire::fp8_e4m3: return store_blocks<f32_scaled<e4m3>>(t, to, column, n, v);
    case wire::fp8_e4m3fnuz: return store_blocks<f32_scaled<e4m3fnuz>>(t, to, column, n, v);
    case wire::fp8_ue8m0: return store_blocks<power_scaled>(t, to, column, n, v);
    case wire::opaque: return;
  }
}

/// Loads a tile in a format that rows have on their way home.
template <int N>
FERRY_FN void load_wire(wire from_wire, std::byte const* row, std::byte const* scales, int column,
                        int n, float (&v)[N]) {
  switch (from_wire) {
    case wire::f32: return load_columns<float>(row, column, n, v);
    case wire::bf16: return load_columns<bf16>(row, column, n, v);
    case wire::fp16: return load_columns<fp16>(row, column, n, v);
    case wire::fp8_e4m3: return load_fp8<e4m3>(row, scales, column, n, v);
    case wire::fp8_e4m3fnuz: return load_fp8<e4m3fnuz>(row, scales, column, n, v);
    default: return;
  }
}

/// Adds a tile in a format that rows have on their way home.
template <int N>
FERRY_FN void add_wire(wire from_wire, std::byte const* row, std::byte const* scales, int column,
                       int n, float weight, float (&sum)[N]) {
  switch (from_wire) {
    case wire::f32: return add_row_columns<float>(row, column, n, weight, sum);
    case wire::bf16: return add_row_columns<bf16>(row, column, n, weight, sum);
    case wire::fp16: return add_row_columns<fp16>(row, column, n, weight, sum);
    default: break;
  }
  float v[N];
  load_wire(from_wire, row, scales, column, n, v);
  add_columns(weight, v, sum);
}

}  // namespace ferry
