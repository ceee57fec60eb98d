// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Products by a vendor's library whose rows do not depend on each other.
///
/// A library chooses by the number of rows how it adds up a row. So every call has the same number,
/// and one algorithm that was chosen for it: a batch is cut into blocks of that many rows, of which
/// the last one holds some that nobody asked for.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/exec/queue.hpp>

#include "deepseek/products/vendor_products.hpp"

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace ferry::deepseek {

/// The library of one device, for one model.
class fixed_products {
 public:
  /// Errors   unsupported no such library, or it finds nothing on the device: the message says
  ///          which; device
  static result<std::shared_ptr<fixed_products>> open(device const& where);
  ~fixed_products();
  fixed_products(fixed_products const&) = delete;

  char const* name() const { return table_->name; }
  device const& where() const { return where_; }
  vendor_products const& table() const { return *table_; }
  void* handle() const { return handle_; }

 private:
  explicit fixed_products(vendor_products const& table) : table_(&table) {}
  vendor_products const* table_;
  device where_;
  void* handle_ = nullptr;
};

/// How one shape is computed; made once.
class product_plan {
 public:
  /// Errors   unsupported the library has no algorithm for it; device
  static result<product_plan> make(std::shared_ptr<fixed_products> by, product_shape const& shape);
  product_plan(product_plan&& other) noexcept
      : by_(std::move(other.by_)), plan_(std::exchange(other.plan_, nullptr)) {}
  product_plan& operator=(product_plan&&) = delete;
  ~product_plan();

  /// Errors   device
  result<void> multiply(queue& q, void const* x, void const* weights, float* y) const;

 private:
  product_plan(std::shared_ptr<fixed_products> by, void* plan) : by_(std::move(by)), plan_(plan) {}
  std::shared_ptr<fixed_products> by_;
  void* plan_;
};

/// The plans of one matrix of weights, by shape; few.
class product_plans {
 public:
  /// Null where the library has no algorithm for the shape.
  /// Errors   device
  result<product_plan const*> find(std::shared_ptr<fixed_products> const& by,
                                   product_shape const& shape);

 private:
  struct entry {
    product_shape shape;
    std::unique_ptr<product_plan> plan;
  };
  std::vector<entry> all_;
};

/// The largest power of two, up to 256, that divides all of these numbers of bytes.
int alignment_of(std::initializer_list<std::uint64_t> bytes);

/// The products of emulated devices: sums in an order of their own, as a vendor's are.
vendor_products const& played_products();

}  // namespace ferry::deepseek
