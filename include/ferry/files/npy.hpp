// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One array in a file of NumPy's format (.npy).
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/files/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace ferry {

/// A whole file in memory. Row-major, little-endian; element types i8 to i64, u8 to u64, f16, f32,
/// f64, and bool.
class npy_file {
 public:
  /// Errors   io not a readable file; malformed_input not the format, more or fewer bytes than the
  /// shape
  ///          makes; unsupported big-endian or column-major arrays, and other element types
  static result<npy_file> open(std::filesystem::path const& file);

  storage_type type() const { return type_; }
  std::vector<std::int64_t> const& shape() const { return shape_; }
  std::span<std::byte const> data() const { return std::span(bytes_).subspan(data_start_); }

 private:
  npy_file() = default;
  storage_type type_ = storage_type::f32;
  std::vector<std::int64_t> shape_;
  std::vector<std::byte> bytes_;
  std::size_t data_start_ = 0;
};

}  // namespace ferry
