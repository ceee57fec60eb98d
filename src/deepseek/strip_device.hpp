// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A device as the model's parts use it: memory, and kernels that are put on its queues.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/exec/queue.hpp>

#include "deepseek/fixed_products.hpp"
#include "deepseek/row_kernels.hpp"
#include "exec/current_device.hpp"

#include <cstddef>
#include <span>

namespace ferry::deepseek {

/// An array in device memory.
template <class T>
class device_array {
 public:
  device_array() = default;
  explicit device_array(device_memory memory) : memory_(std::move(memory)) {}
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::int64_t size() const { return static_cast<std::int64_t>(memory_.size() / sizeof(T)); }

 private:
  device_memory memory_;
};

class strip_device {
 public:
  /// Loads the kernels.
  /// Errors   those of row_kernels_of and queue::on; device
  static result<strip_device> open(device const& where);

  /// From here on products of up to `rows` rows go to the vendor's library, where it serves them.
  /// Errors   those of fixed_products::open
  result<void> use_library(std::int64_t rows);
  /// Null: all products are ferry's own.
  std::shared_ptr<fixed_products> const& library() const { return library_; }
  /// Rows of each product of the library; 1 without it. What a product reads and writes has room
  /// for a multiple of it.
  std::int64_t library_rows() const { return library_rows_; }

  device const& where() const { return where_; }
  int strips() const { return kernels_->strips(); }

  /// Puts a kernel on the queue.
  /// Errors   device
  template <class Kernel>
  result<void> run(queue& q, Kernel const& kernel) const {
    FERRY_TRY(current_device const chosen, current_device::make(where_));
    launch_of<Kernel> const& with = *kernels_;
    return checked(with.launch({q.stream(), kernels_->blocks, kernels_->teams}, kernel));
  }

  /// Zeroed; no memory for 0 elements.
  /// Errors   out_of_memory, device
  template <class T>
  result<device_array<T>> array(std::int64_t size) const {
    if (size == 0) return device_array<T>();
    FERRY_TRY(device_memory memory,
              where_.allocate(memory_kind::local, static_cast<std::size_t>(size) * sizeof(T)));
    return device_array<T>(std::move(memory));
  }
  /// A copy of the host's values, there when the call returns.
  template <class T>
  result<device_array<T>> copy_of(std::span<T const> values) {
    FERRY_TRY(device_array<T> made, array<T>(std::ssize(values)));
    FERRY_CHECK(load(made.data(), values.data(), values.size_bytes()));
    return made;
  }
  /// The same in bf16, rounded to nearest.
  result<device_array<bf16>> narrow_copy_of(std::span<float const> values);

 private:
  strip_device(device where, queue loader) : where_(std::move(where)), loader_(std::move(loader)) {}
  result<void> checked(int status) const;
  result<void> load(void* to, void const* from, std::size_t bytes);

  device where_;
  queue loader_;
  row_kernels const* kernels_ = nullptr;
  std::shared_ptr<fixed_products> library_;
  std::int64_t library_rows_ = 1;
};

}  // namespace ferry::deepseek
