// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The table of products over `blas`, the calls of one vendor's library. Compiled once for each
// vendor, into a library that no program links.

#include "deepseek/products/native_blas.hpp"
#include "deepseek/products/vendor_products.hpp"

#include <cstdio>
#include <memory>
#include <new>

namespace ferry::deepseek {
namespace {

backend_status from(blas::status s, char const* doing) {
  if (s == blas::fine) return {};
  backend_status failed;
  failed.failed =
      1 + static_cast<int>(s == blas::not_supported ? error_code::unsupported : error_code::device);
  std::snprintf(failed.message, sizeof failed.message, "%s: %s: status %d", blas::name, doing,
                static_cast<int>(s));
  return failed;
}

/// The library sees matrices by columns: y^T = W x^T, where W lies transposed.
struct planned {
  blas::product product = {};
  blas::layout weights = {}, x = {}, y = {};
  blas::algorithm algorithm = {};

  ~planned() {
    if (product) blas::destroy(product);
    for (blas::layout l : {weights, x, y})
      if (l) blas::destroy(l);
  }
  planned() = default;
  planned(planned const&) = delete;

  blas::status make(blas::handle library, product_shape const& s) {
    blas::element const narrow = s.narrow ? blas::bf16 : blas::f32;
    blas::status done = blas::make_product(&product);
    if (done == blas::fine) done = blas::transpose_first(product);
    if (done == blas::fine)
      done = blas::make_layout(&weights, narrow, {s.in, s.out, s.in, s.groups, s.out * s.in});
    if (done == blas::fine)
      done = blas::make_layout(&x, narrow, {s.in, s.rows, s.x_stride, s.groups, s.x_group});
    if (done == blas::fine)
      done = blas::make_layout(&y, blas::f32, {s.out, s.rows, s.y_stride, s.groups, s.y_group});
    if (done == blas::fine)
      done = blas::choose(&algorithm, library, product, weights, x, y, s.alignment_bytes);
    return done;
  }
};

backend_status open(void** library) {
  blas::handle made = {};
  backend_status const s = from(blas::open(&made), "opening the library");
  *library = made;
  return s;
}
void close(void* library) {
  static_cast<void>(blas::close(static_cast<blas::handle>(library)));
}

backend_status plan(void* library, product_shape const* shape, void** plan) {
  std::unique_ptr<planned> made(new (std::nothrow) planned);
  if (!made) return from(blas::no_memory, "a plan");
  backend_status const s =
      from(made->make(static_cast<blas::handle>(library), *shape), "planning a product");
  if (!s.failed) *plan = made.release();
  return s;
}
void forget(void* plan) {
  delete static_cast<planned*>(plan);
}

backend_status multiply(void* library, void* plan, void* stream, void const* x, void const* weights,
                        float* y) {
  planned const& p = *static_cast<planned const*>(plan);
  return from(blas::multiply(static_cast<blas::handle>(library), p.product, {weights, p.weights},
                             {x, p.x}, y, p.y, p.algorithm, static_cast<blas::stream>(stream)),
              "starting a product");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) vendor_products const* ferry_products() {
  static constexpr vendor_products table{
      vendor_products::current_version, blas::name, open, close, plan, forget, multiply};
  return &table;
}

}  // namespace ferry::deepseek
