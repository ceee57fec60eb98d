// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Private memory of one rank's device.
#pragma once

#include <ferry/base/result.hpp>

#include <cstddef>
#include <utility>

namespace ferry {

/// Zeroed memory that only pages in where it is touched, so worst-case sizes cost address space
/// alone.
class buffer {
 public:
  buffer() = default;
  /// Errors   out_of_memory
  static result<buffer> allocate(std::size_t bytes);

  buffer(buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  buffer& operator=(buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~buffer();

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace ferry
