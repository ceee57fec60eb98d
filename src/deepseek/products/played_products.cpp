// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// A library of products for emulated devices, so that everything around a vendor's runs on a
// machine that has no GPU. Its sums go from one end of a row to the other, in f64.

#include "base/fail.hpp"
#include "deepseek/fixed_products.hpp"
#include "exec/emulated/emulated_backend.hpp"
#include "exec/emulated/emulated_memory.hpp"

#include <ferry/base/number_formats.hpp>

namespace ferry::deepseek {
namespace {

float value_of(float x) {
  return x;
}
float value_of(bf16 x) {
  return to_float(x);
}

template <class T>
void multiply_all(product_shape const& s, T const* x, T const* weights, float* y) {
  for (std::int64_t g = 0; g < s.groups; ++g)
    for (std::int64_t r = 0; r < s.rows; ++r)
      for (std::int64_t c = 0; c < s.out; ++c) {
        T const* const row = x + g * s.x_group + r * s.x_stride;
        T const* const with = weights + (g * s.out + c) * s.in;
        double sum = 0;
        for (std::int64_t k = 0; k < s.in; ++k)
          sum += double{value_of(row[k])} * double{value_of(with[k])};
        y[g * s.y_group + r * s.y_stride + c] = static_cast<float>(sum);
      }
}

backend_status open(void** library) {
  static char const one = 0;
  *library = const_cast<char*>(&one);
  return {};
}
void close(void*) {}

backend_status plan(void*, product_shape const* shape, void** plan) {
  // As a vendor's: not every shape is served.
  if (shape->alignment_bytes < 4)
    return to_status(fail(error_code::unsupported, "rows at {} bytes", shape->alignment_bytes));
  *plan = new product_shape(*shape);
  return {};
}
void forget(void* plan) {
  delete static_cast<product_shape*>(plan);
}

backend_status multiply(void*, void* plan, void* stream, void const* x, void const* weights,
                        float* y) {
  return to_status([&]() -> result<void> {
    FERRY_TRY(void* const from, emulated_memory::reached_by_device(const_cast<void*>(x)));
    FERRY_TRY(void* const with, emulated_memory::reached_by_device(const_cast<void*>(weights)));
    FERRY_TRY(void* const to, emulated_memory::reached_by_device(y));
    product_shape const shape = *static_cast<product_shape const*>(plan);
    return emulated_stream(stream).put([=]() -> result<void> {
      auto* const sums = static_cast<float*>(to);
      if (shape.narrow)
        multiply_all(shape, static_cast<bf16 const*>(from), static_cast<bf16 const*>(with), sums);
      else
        multiply_all(shape, static_cast<float const*>(from), static_cast<float const*>(with), sums);
      return {};
    });
  }());
}

}  // namespace

vendor_products const& played_products() {
  static constexpr vendor_products table{
      vendor_products::current_version, "played", open, close, plan, forget, multiply};
  return table;
}

}  // namespace ferry::deepseek
