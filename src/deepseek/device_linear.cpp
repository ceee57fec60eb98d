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
  auto const fill = [&](auto product, auto const* from, std::int64_t stride, auto const* weights) {
    product.x = from;
    product.x_stride = stride;
    product.x_group = with.x_group;
    product.weights = weights;
    product.y = with.y;
    product.y_stride = with.y_stride;
    product.y_group = with.y_group;
    product.starts = with.starts;
    product.counts = with.counts;
    product.groups = groups_;
    product.rows = with.rows;
    product.in = in_;
    product.out = out_;
    return on.run(q, product);
  };
  if (!narrow_) return fill(grouped_product<float>{}, x.data, x.row_stride, weights_.data());
  matrix<bf16> const to = dense(staged.codes, with.rows, width);
  FERRY_CHECK(on.run(q, narrow_rows{x, to, with.end}));
  return fill(grouped_product<bf16>{}, static_cast<bf16 const*>(to.data), width, codes_.data());
}

}  // namespace ferry::deepseek
