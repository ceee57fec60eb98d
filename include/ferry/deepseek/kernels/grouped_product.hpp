// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Matrix products of groups of rows, each with weights of its own.
#pragma once

#include <ferry/base/number_formats.hpp>
#include <ferry/exec/strip.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// y = x W^T for each group, of T (f32 or bf16) to f32.
/// Group g has the rows starts[g] .. starts[g] + counts[g], which may be known on the device only;
/// without starts it has all `rows`. A group's x and y may lie apart (heads of one row).
/// Shapes   x [rows, in], weights [groups, out, in] dense, y [rows, out]
/// Units    strides in elements; x_group and y_group lead from one group's x and y to the next's
/// Order    lane i adds the products i, i + 16, ..., each with the sum in one rounding; then the
///          lanes are summed. A row's result depends on nothing but that row and the weights.
template <class T>
struct grouped_product {
  T const* x = nullptr;
  std::int64_t x_stride = 0;
  std::int64_t x_group = 0;
  T const* weights = nullptr;
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t y_group = 0;
  std::int32_t const* starts = nullptr;
  std::int32_t const* counts = nullptr;
  int groups = 1;
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    std::int64_t const columns = (out + tile - 1) / tile;
    std::int64_t item = s.index();  // counted from the group's first tile on
    for (int g = 0; g < groups; ++g) {
      std::int64_t const first = starts != nullptr ? starts[g] : 0;
      std::int64_t const count = counts != nullptr ? counts[g] : rows;
      std::int64_t const blocks = (count + tile - 1) / tile;
      // Rows run faster: neighbouring strips share weights.
      for (; item < blocks * columns; item += s.count()) {
        one_tile(s, g, first, count, item % blocks * tile, item / blocks * tile);
      }
      item -= blocks * columns;
    }
  }

 private:
  static constexpr int tile = 4;

  /// Rows and columns behind the end repeat the last one and are not stored.
  template <strip Strip>
  FERRY_FN void one_tile(Strip const& s, int group, std::int64_t first, std::int64_t count,
                         std::int64_t row, std::int64_t column) const {
    T const* from[tile];
    T const* with[tile];
    for (int i = 0; i < tile; ++i) {
      std::int64_t const r = row + i < count ? row + i : count - 1;
      std::int64_t const c = column + i < out ? column + i : out - 1;
      from[i] = x + group * x_group + (first + r) * x_stride;
      with[i] = weights + (group * out + c) * in;
    }
    typename Strip::values total[tile][tile];
    for (auto& of_row : total) {
      for (auto& t : of_row) t = s.fill(0);
    }
    std::int64_t k = 0;
    for (; k + strip_lanes <= in; k += strip_lanes) {
      add(
          s, total, [&](T const* at) { return s.load(at + k); }, from, with);
    }
    if (k < in) {
      add(
          s, total, [&](T const* at) { return s.load_first(at + k, in - k, 0); }, from, with);
    }
    for (int i = 0; i < tile && row + i < count; ++i) {
      store(s, total[i], y + group * y_group + (first + row + i) * y_stride + column, out - column);
    }
  }

  template <strip Strip, class Load>
  FERRY_FN static void add(Strip const& s, typename Strip::values (&total)[tile][tile],
                           Load const& load, T const* const (&from)[tile],
                           T const* const (&with)[tile]) {
    typename Strip::values w[tile];
    for (int j = 0; j < tile; ++j) w[j] = load(with[j]);
    for (int i = 0; i < tile; ++i) {
      auto const v = load(from[i]);
      for (int j = 0; j < tile; ++j) total[i][j] = s.multiply_add(v, w[j], total[i][j]);
    }
  }

  template <strip Strip>
  FERRY_FN static void store(Strip const& s, typename Strip::values const (&total)[tile], float* to,
                             std::int64_t n) {
    if (n >= tile) {
      s.store_four(s.sum_four(total[0], total[1], total[2], total[3]), to);
      return;
    }
    for (int j = 0; j < tile; ++j) {
      float const one = s.sum(total[j]);
      if (s.leader() && j < n) to[j] = one;
    }
  }
};

}  // namespace ferry::deepseek
