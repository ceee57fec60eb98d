// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Matrix products by a vendor's own library: a table of plain functions, filled by a shared
/// library that is opened on demand beside the vendor's backend.
#pragma once

#include "exec/device_backend.hpp"

#include <cstdint>

namespace ferry::deepseek {

/// A product whose shape never changes: y = x W^T for each group, of f32 or bf16 to f32.
/// Shapes   x [rows, in], weights [groups, out, in] dense, y [rows, out]
/// Units    strides in elements; x_group and y_group lead from one group's x and y to the next's
struct product_shape {
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t groups = 1;
  std::int64_t x_stride = 0;
  std::int64_t x_group = 0;
  std::int64_t y_stride = 0;
  std::int64_t y_group = 0;
  bool narrow = false;      ///< x and weights are bf16
  int alignment_bytes = 4;  ///< that x and y have, in every group; weights have 256

  friend bool operator==(product_shape const&, product_shape const&) = default;
};

/// Calls are made for the calling thread's current device. None may be made twice at a time with
/// the same library handle.
struct vendor_products {
  static constexpr std::uint32_t current_version = 1;
  std::uint32_t version;
  char const* name;

  backend_status (*open)(void** library);
  void (*close)(void* library);
  /// Chooses the algorithm, once for all calls: results of the same shape have the same bits.
  /// Fails with `unsupported` where the library has none.
  backend_status (*plan)(void* library, product_shape const* shape, void** plan);
  void (*forget)(void* plan);
  backend_status (*multiply)(void* library, void* plan, void* stream, void const* x,
                             void const* weights, float* y);
};

/// The entry point of a vendor's library of products, `ferry_products`.
using vendor_products_entry = vendor_products const* (*)();

}  // namespace ferry::deepseek
