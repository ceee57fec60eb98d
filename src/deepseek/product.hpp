// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// oneDNN's matrix products, kept ready per thread.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/base/types.hpp>

#include <dnnl.hpp>

#include <cstddef>

namespace ferry::deepseek {

/// Row counts that calls may have. Few, because every one is a kernel of its own; with them any
/// count takes at most two calls per 64 rows.
struct call_rows {
  static constexpr int most = 64;
  static constexpr int fixed = 16;
  static constexpr int kinds = 22;

  /// The largest allowed count that is not above `rows`: 1..16, or a multiple of 8 up to 64.
  static constexpr int at_most(std::int64_t rows) {
    if (rows >= most) return most;
    return static_cast<int>(rows < 24 ? (rows < fixed ? rows : fixed) : rows / 8 * 8);
  }
  static constexpr int index(int rows) { return rows <= fixed ? rows - 1 : 13 + rows / 8; }
  static constexpr int count(int index) { return index < fixed ? index + 1 : (index - 13) * 8; }
};

/// One shape of product, x [n, in] times W [out, in], both of `type`, to f32. One object per shape
/// and process, never destroyed.
struct product_shape {
  int in = 0;
  int out = 0;
  dtype type = dtype::f32;    ///< f32 or bf16
  std::size_t id = 0;         ///< place in each thread's table of calls
  dnnl::memory::desc packed;  ///< how the weights lie; the same for every row count

  /// Whether a row's result is the same in calls of any allowed row count. Found out once per
  /// shape, with the first weights that can tell; until then, no.
  bool rows_are_independent(dnnl::memory const& weights) const;

  /// y [rows, out] = x [rows, in] W^T, dense, `rows` one of call_rows, on the calling thread alone.
  /// Errors   internal oneDNN failed
  result<void> multiply(dnnl::memory const& weights, void const* x, float* y, int rows) const;

  /// Copies `rows` [out, in] of `type` into the packed form.
  result<dnnl::memory> pack(void const* rows) const;
  /// The other way round.
  result<void> unpack(dnnl::memory const& weights, void* rows) const;
};

/// Errors   unsupported this machine has no product of this type; out_of_memory, internal
result<product_shape const*> find_product(int in, int out, dtype type);

}  // namespace ferry::deepseek
