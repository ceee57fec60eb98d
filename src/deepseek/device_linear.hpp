// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Matrix products on a device.
#pragma once

#include <ferry/deepseek/linear.hpp>

#include "deepseek/strip_device.hpp"

namespace ferry::deepseek {

/// Where inputs are changed before a product reads them.
struct product_staging {
  float* values = nullptr;  ///< [elements], for quantised inputs
  bf16* codes = nullptr;    ///< [elements], for products of bf16
  std::int64_t elements = 0;
};

/// Rows and where the results go; the fields are those of grouped_product. Without starts, x and y
/// have room for rows up to the next multiple of strip_device::library_rows.
struct product_rows {
  float const* x = nullptr;
  std::int64_t x_stride = 0;
  std::int64_t x_group = 0;
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t y_group = 0;
  std::int64_t rows = 0;
  std::int32_t const* starts = nullptr;
  std::int32_t const* counts = nullptr;
  std::int32_t const* end = nullptr;  ///< rows of x at and after it are not looked at
};

/// y = x W^T for groups of weights, as `linear` computes it but for the order of the sums: that of
/// grouped_product, the same on all devices, or that of the vendor's library. Either way a row's
/// result does not depend on the other rows.
class device_linear {
 public:
  device_linear() = default;
  /// Shapes   weights [groups * out, in]; no groups: nothing is computed
  /// Errors   out_of_memory, device
  static result<device_linear> make(strip_device& on, std::span<float const> weights, int groups,
                                    std::int64_t in, linear_options const& options);

  /// Elements of staging for that many rows, of which groups take parts `x_group` apart.
  std::int64_t staging(std::int64_t rows, std::int64_t x_group = 0) const;

  /// Groups whose rows are known on the device alone go to ferry's own kernel always.
  /// Errors   device; invalid_argument too little staging
  result<void> apply(strip_device const& on, queue& q, product_rows const& with,
                     product_staging const& staging) const;

  /// A group's weights in device memory, in the type that products compute with.
  std::span<std::byte> group(int index) const;
  int groups() const { return groups_; }
  bool quantises_input() const { return quantise_; }
  std::int64_t in() const { return in_; }
  std::int64_t out() const { return out_; }

 private:
  template <class T>
  result<void> multiply(strip_device const& on, queue& q, product_rows const& with, T const* x,
                        std::int64_t x_stride, T const* weights) const;
  template <class T>
  result<bool> ask_library(strip_device const& on, queue& q, product_rows const& with, T const* x,
                           std::int64_t x_stride, T const* weights) const;

  int groups_ = 0;
  std::int64_t in_ = 0;
  std::int64_t out_ = 0;
  bool quantise_ = false;
  bool narrow_ = false;
  device_array<float> weights_;
  device_array<bf16> codes_;
  std::unique_ptr<product_plans> plans_ = std::make_unique<product_plans>();
};

}  // namespace ferry::deepseek
