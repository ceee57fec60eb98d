// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A view of rows in memory that somebody else owns.
#pragma once

#include <ferry/base/float_bits.hpp>
#include <ferry/base/types.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ferry {

/// Rows of T at a fixed stride.
/// Units  rows and columns in elements, `row_stride` in elements
template <class T>
struct matrix {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_stride = 0;

  FERRY_FN constexpr T* operator[](std::int64_t row) const { return data + row * row_stride; }
  /// Who may write may read.
  template <class Const>
  requires(std::is_same_v<Const, T const> && !std::is_const_v<T>) FERRY_FN constexpr
  operator matrix<Const>() const {
    return {data, rows, columns, row_stride};
  }
};

/// Dense rows: the stride is the number of columns.
template <class T>
FERRY_FN constexpr matrix<T> dense(T* data, std::int64_t rows, std::int64_t columns) {
  return {data, rows, columns, columns};
}

/// Rows whose element type is known only at run time.
/// Units  `row_stride_bytes` in bytes; 0 means dense
template <class Byte>
struct any_matrix {
  Byte* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  dtype type = dtype::f32;
  std::int64_t row_stride_bytes = 0;

  FERRY_FN constexpr std::int64_t stride_bytes() const {
    return row_stride_bytes ? row_stride_bytes
                            : columns * static_cast<std::int64_t>(bytes_of(type));
  }
  FERRY_FN constexpr Byte* operator[](std::int64_t row) const {
    return data + row * stride_bytes();
  }
  /// Who may write may read.
  template <class Const>
  requires(std::is_same_v<Const, Byte const> && !std::is_const_v<Byte>) FERRY_FN constexpr
  operator any_matrix<Const>() const {
    return {data, rows, columns, type, row_stride_bytes};
  }
};
using tensor = any_matrix<std::byte>;
using const_tensor = any_matrix<std::byte const>;

/// Dense rows of `columns` elements as a tensor; T is float or a number format.
template <class T>
tensor rows_of(T* data, std::int64_t rows, std::int64_t columns) {
  return {reinterpret_cast<std::byte*>(data), rows, columns, dtype_of<T>, 0};
}
template <class T>
const_tensor rows_of(T const* data, std::int64_t rows, std::int64_t columns) {
  return {reinterpret_cast<std::byte const*>(data), rows, columns, dtype_of<T>, 0};
}

}  // namespace ferry
