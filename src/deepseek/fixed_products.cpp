// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/fixed_products.hpp"

#include "base/fail.hpp"
#include "exec/current_device.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <string>

namespace ferry::deepseek {
namespace {

/// The table of the library beside the backend's own.
result<vendor_products const*> table_of(device const& where) {
  device::state const& about = where.about();
  if (about.kind == device_kind::emulated) return &played_products();
  if (about.backend == nullptr)
    return fail(error_code::unsupported, "{} has products of its own", where.name());
  Dl_info backend{};
  std::filesystem::path folder;
  if (dladdr(about.backend, &backend) != 0)
    folder = std::filesystem::path(backend.dli_fname).parent_path();
  std::string const file =
      (folder / ("libferry_" + std::string(about.backend->name) + "_products.so")).string();
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(error_code::unsupported, "no library of products for {}: {}", where.name(),
                dlerror());
  auto const entry = reinterpret_cast<vendor_products_entry>(dlsym(library, "ferry_products"));
  vendor_products const* const table = entry != nullptr ? entry() : nullptr;
  if (table == nullptr || table->version != vendor_products::current_version)
    return fail(error_code::unsupported, "{} is not this version's library of products", file);
  return table;
}

}  // namespace

result<std::shared_ptr<fixed_products>> fixed_products::open(device const& where) {
  FERRY_TRY(vendor_products const* const table, table_of(where));
  std::shared_ptr<fixed_products> made(new fixed_products(*table));
  made->where_ = where;
  FERRY_TRY(current_device const chosen, current_device::make(where));
  FERRY_CHECK(to_result(table->open(&made->handle_)));
  return made;
}
fixed_products::~fixed_products() {
  if (handle_ == nullptr) return;
  auto const chosen = current_device::make(where_);
  table_->close(handle_);
}

result<product_plan> product_plan::make(std::shared_ptr<fixed_products> by,
                                        product_shape const& shape) {
  void* plan = nullptr;
  FERRY_TRY(current_device const chosen, current_device::make(by->where()));
  FERRY_CHECK(to_result(by->table().plan(by->handle(), &shape, &plan)));
  return product_plan(std::move(by), plan);
}
product_plan::~product_plan() {
  if (plan_ != nullptr) by_->table().forget(plan_);
}

result<void> product_plan::multiply(queue& q, void const* x, void const* weights, float* y) const {
  FERRY_TRY(current_device const chosen, current_device::make(q.where()));
  return to_result(by_->table().multiply(by_->handle(), plan_, q.stream(), x, weights, y));
}

result<product_plan const*> product_plans::find(std::shared_ptr<fixed_products> const& by,
                                                product_shape const& shape) {
  for (entry const& e : all_)
    if (e.shape == shape) return e.plan.get();
  auto made = product_plan::make(by, shape);
  if (!made && made.error().code != error_code::unsupported) return made.error();
  all_.push_back({shape, made ? std::make_unique<product_plan>(std::move(*made)) : nullptr});
  return all_.back().plan.get();
}

int alignment_of(std::initializer_list<std::uint64_t> bytes) {
  int least = 8;
  for (std::uint64_t const b : bytes) least = std::min(least, std::countr_zero(b));
  return 1 << least;
}

}  // namespace ferry::deepseek
