// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One safetensors file: named tensors in a mapped file.
#pragma once

#include <ferry/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

/// Element types that a safetensors file can hold.
enum class storage_type : std::uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f16,
  bf16,
  f32,
  f64,
  e4m3,
  e5m2,
  e8m0
};

/// Bytes of one element.
std::size_t bytes_of(storage_type type);
/// The name that files use ("BF16", "F8_E4M3", ...).
char const* to_string(storage_type type);

/// One tensor, row-major, little-endian.
/// Lifetime borrows the file that it came from
struct tensor_view {
  storage_type type = storage_type::f32;
  std::vector<std::int64_t> shape;  ///< empty for a scalar
  std::span<std::byte const> data;  ///< aligned to the element's size
  std::string_view name;

  /// Elements in all: the product of `shape`.
  std::int64_t size() const;
};

/// An open safetensors file. Opening reads the header alone. The data is mapped at the first
/// request for a tensor, and only the pages of requested tensors are read from disk. A tensor that
/// the file does not align is copied, once.
/// Lifetime copies are the same file; unmapped when the last one goes. A file that another process
///          shortens or rewrites meanwhile is outside the contract
class safetensors {
 public:
  /// Reads and checks the whole header: afterwards every tensor is known to lie inside the file.
  /// Errors   io not a readable file; malformed_input naming file, tensor and reason
  static result<safetensors> open(std::filesystem::path const& file);

  bool has(std::string_view name) const;
  /// Errors   invalid_argument no such tensor; io it cannot be mapped. Safe from several threads
  result<tensor_view> tensor(std::string_view name) const;
  /// All names, sorted.
  std::vector<std::string_view> names() const;
  /// The strings under `__metadata__`.
  std::map<std::string, std::string> const& metadata() const;
  std::filesystem::path const& path() const;

 private:
  struct state;
  explicit safetensors(std::shared_ptr<state> s);
  std::shared_ptr<state> state_;
};

}  // namespace ferry
