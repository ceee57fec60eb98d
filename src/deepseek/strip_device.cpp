// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/strip_device.hpp"

#include "base/fail.hpp"
#include "exec/device_backend.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace ferry::deepseek {
namespace {

// A copy to a device that does not answer must not hold up its caller for ever.
constexpr std::chrono::milliseconds longest_copy{120'000};

}  // namespace

result<strip_device> strip_device::open(device const& where) {
  FERRY_TRY(row_kernels const* const kernels, row_kernels_of(where));
  FERRY_TRY(queue loader, queue::on(where));
  strip_device made(where, std::move(loader));
  made.kernels_ = kernels;
  FERRY_TRY(current_device const chosen, current_device::make(where));
  FERRY_CHECK(made.checked(kernels->load()));
  return made;
}

result<void> strip_device::use_library(std::int64_t rows) {
  FERRY_TRY(library_, fixed_products::open(where_));
  // Long prefills are many calls then; longer ones would make a step of few tokens pay for them.
  library_rows_ = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(rows, 16, 256))));
  return {};
}

result<void> strip_device::checked(int status) const {
  if (status == 0) return {};
  return fail(error_code::device, "a kernel of the model cannot be started on {}: {}",
              where_.name(), kernels_->describe(status));
}

result<void> strip_device::load(void* to, void const* from, std::size_t bytes) {
  FERRY_CHECK(loader_.copy(to, from, bytes));
  return loader_.wait(longest_copy);
}

result<device_array<bf16>> strip_device::narrow_copy_of(std::span<float const> values) {
  std::vector<bf16> codes(values.size());
  loops().narrow(
      {dense(values.data(), 1, std::ssize(values)), dense(codes.data(), 1, std::ssize(values))});
  return copy_of<bf16>(codes);
}

}  // namespace ferry::deepseek
