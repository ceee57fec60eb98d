// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The `strip` concept: 16 neighbouring values that are worked on together.
///
/// On a CPU a strip is a few vectors in the hands of one thread; on a GPU it is 16 neighbouring
/// lanes with one value each, so that a team holds several strips. A sum over a strip adds the
/// same pairs everywhere (halves of 8, of 4, of 2), so kernels that are written over strips give
/// the same bits on every device. Nothing here is contracted: who wants a product and a sum in
/// one rounding says so.
#pragma once

#include <ferry/base/platform.hpp>

#include <concepts>
#include <cstdint>

namespace ferry {

/// Values of a strip, whatever the device.
inline constexpr int strip_lanes = 16;

/// Contract of a strip. Unless it says "each lane", all lanes of the strip must call, each at the
/// same place: lanes of one strip agree on every branch, while strips of a team may differ.
///   values             16 floats, one per lane; a + b, a * b and x * a work lane by lane
///   columns_at_once    columns of a row that one strip takes, where rows may be split; 0: all
///   sums_held          rows that are added up in registers before the sum goes back to memory
///   index() count()    each lane: this strip's number within the launch; strips of the launch
///   leader()           each lane: whether it is the one that stores what the strip agrees on
///   load(p)            values from p[0, 16); of f32, or of another format as f32
///   load_first(p, n, rest)  from p[0, n), n < 16; the other lanes hold `rest`
///   store(v, p)        to p[0, 16)
///   fill(x)            x in all lanes
///   sum(v)             the sum, the same in all lanes
///   sum_four(a, b, c, d)    four sums at once: `four`, which can be multiplied by a number
///   store_four(f, p)   the four numbers to p[0, 4)
///   larger(a, b)       lane by lane a > b ? a : b
///   multiply_add(a, b, c)   lane by lane a * b + c in one rounding
///   largest(v)         the largest of the values, the same in all lanes; NaN is never larger
///   first_equal(v, x)  the lowest lane whose value equals x, 16 if there is none
///   at_lane(v, i)      the value of lane i
///   map(f, v...)       f of each lane's values
///   for_each(n, f)     f(i) for each i below n, once by some lane: number i by lane i mod 16, in
///                      rising order within a lane
///   merge(v, f)        v of all lanes put together by f, which is associative and commutative
///   sync()             memory that lanes of this strip stored is there for its other lanes
template <class Strip>
concept strip = requires(Strip const& s, typename Strip::values const& v, float const* from,
                         float* to, float x, std::int64_t n) {
  typename Strip::values;
  typename Strip::four;
  { Strip::columns_at_once } -> std::convertible_to<std::int64_t>;
  { Strip::sums_held } -> std::convertible_to<std::int64_t>;
  { s.index() } -> std::same_as<std::int64_t>;
  { s.count() } -> std::same_as<std::int64_t>;
  { s.leader() } -> std::same_as<bool>;
  { s.load(from) } -> std::same_as<typename Strip::values>;
  { s.load_first(from, n, x) } -> std::same_as<typename Strip::values>;
  s.store(v, to);
  { s.fill(x) } -> std::same_as<typename Strip::values>;
  { s.sum(v) } -> std::same_as<float>;
  { s.sum_four(v, v, v, v) } -> std::same_as<typename Strip::four>;
  s.store_four(s.sum_four(v, v, v, v) * x, to);
  { s.larger(v, v) } -> std::same_as<typename Strip::values>;
  { s.multiply_add(v, v, v) } -> std::same_as<typename Strip::values>;
  { s.largest(v) } -> std::same_as<float>;
  { s.first_equal(v, x) } -> std::same_as<int>;
  { s.at_lane(v, 0) } -> std::same_as<float>;
  { v + v* v } -> std::same_as<typename Strip::values>;
  { x* v } -> std::same_as<typename Strip::values>;
  s.sync();
};

/// Calls f(row, first, n) for the pieces of rows that this strip takes: whole rows where a strip
/// has a device to itself, else `columns_at_once` columns of them in turn.
template <strip Strip, class F>
FERRY_FN void for_each_piece(Strip const& s, std::int64_t rows, std::int64_t columns, F const& f) {
  constexpr std::int64_t width = Strip::columns_at_once;
  if constexpr (width == 0) {
    for (std::int64_t row = s.index(); row < rows; row += s.count()) {
      f(row, std::int64_t{0}, columns);
    }
  } else {
    std::int64_t const pieces = (columns + width - 1) / width;
    for (std::int64_t item = s.index(); item < rows * pieces; item += s.count()) {
      std::int64_t const first = item % pieces * width;
      std::int64_t const left = columns - first;
      f(item / pieces, first, left < width ? left : width);
    }
  }
}

}  // namespace ferry
