// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/device_linear.hpp"

#include "base/fail.hpp"

namespace ferry::deepseek {

result<device_linear> device_linear::make(strip_device& on, std::span<float const> weights,
                                          int groups, std::int64_t in,
                                          linear_options const& options) {
  device_linear l;
  l.groups_ = groups;
  l.in_ = in;
  l.out_ = groups > 0 ? std::ssize(weights) / in / groups : 0;
  l.quantise_ = options.quantise_input;
  l.narrow_ = options.compute == dtype::bf16;
  if (l.narrow_) {
    FERRY_TRY(l.codes_, on.narrow_copy_of(weights));
  } else {
    FERRY_TRY(l.weights_, on.copy_of(weights));
  }
  return l;
}

std::span<std::byte> device_linear::group(int index) const {
  auto const elements = static_cast<std::size_t>(in_ * out_);
  std::size_t const size = elements * (narrow_ ? sizeof(bf16) : sizeof(float));
  auto* const first = narrow_ ? reinterpret_cast<std::byte*>(codes_.data())
                              : reinterpret_cast<std::byte*>(weights_.data());
  return {first + static_cast<std::size_t>(index) * size, size};
}

std::int64_t device_linear::staging(std::int64_t rows, std::int64_t x_group) const {
  if (!quantise_ && !narrow_) return 0;
  return rows * (x_group > 0 ? (groups_ - 1) * x_group + in_ : in_);
}

result<void> device_linear::apply(strip_device const& on, queue& q, product_rows const& with,
                                  product_staging const& staged) const {
  if (groups_ == 0 || with.rows == 0) return {};
  std::int64_t const needed = staging(with.rows, with.x_group);
  if (staged.elements < needed) {
    return fail(error_code::invalid_argument, "staging of {} elements, {} are needed",
                staged.elements, needed);
  }
  std::int64_t const width = with.x_group > 0 ? (groups_ - 1) * with.x_group + in_ : in_;
  matrix<float const> x{with.x, with.rows, width, with.x_stride};
  if (quantise_) {
    matrix<float> const to = dense(staged.values, with.rows, width);
    FERRY_CHECK(on.run(q, quantise_rows{x, to, with.end}));
    x = to;
  }
  if (!narrow_) return multiply(on, q, with, x.data, x.row_stride, weights_.data());
  matrix<bf16> const to = dense(staged.codes, with.rows, width);
  FERRY_CHECK(on.run(q, narrow_rows{x, to, with.end}));
  return multiply<bf16>(on, q, with, to.data, width, codes_.data());
}

template <class T>
result<void> device_linear::multiply(strip_device const& on, queue& q, product_rows const& with,
                                     T const* x, std::int64_t x_stride, T const* weights) const {
  if (on.library() != nullptr && with.starts == nullptr) {
    FERRY_TRY(bool const served, ask_library(on, q, with, x, x_stride, weights));
    if (served) return {};
  }
  return on.run(q, grouped_product<T>{.x = x,
                                      .x_stride = x_stride,
                                      .x_group = with.x_group,
                                      .weights = weights,
                                      .y = with.y,
                                      .y_stride = with.y_stride,
                                      .y_group = with.y_group,
                                      .starts = with.starts,
                                      .counts = with.counts,
                                      .groups = groups_,
                                      .rows = with.rows,
                                      .in = in_,
                                      .out = out_});
}

/// False where the library has no algorithm for the shape, which is so in every call or in none.
template <class T>
result<bool> device_linear::ask_library(strip_device const& on, queue& q, product_rows const& with,
                                        T const* x, std::int64_t x_stride, T const* weights) const {
  product_shape shape{.rows = on.library_rows(),
                      .in = in_,
                      .out = out_,
                      .groups = groups_,
                      .x_stride = x_stride,
                      .x_group = with.x_group,
                      .y_stride = with.y_stride,
                      .y_group = with.y_group,
                      .narrow = narrow_};
  auto const bytes = [](std::int64_t elements, std::size_t size) {
    return static_cast<std::uint64_t>(elements) * size;
  };
  shape.alignment_bytes =
      alignment_of({reinterpret_cast<std::uintptr_t>(x), bytes(x_stride, sizeof *x),
                    bytes(with.x_group, sizeof *x), reinterpret_cast<std::uintptr_t>(with.y),
                    bytes(with.y_stride, sizeof *with.y), bytes(with.y_group, sizeof *with.y)});
  FERRY_TRY(product_plan const* const plan, plans_->find(on.library(), shape));
  if (plan == nullptr) return false;
  for (std::int64_t row = 0; row < with.rows; row += shape.rows)
    FERRY_CHECK(plan->multiply(q, x + row * x_stride, weights, with.y + row * with.y_stride));
  return true;
}

}  // namespace ferry::deepseek
