// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/row_kernels.hpp"

#include "base/fail.hpp"
#include "deepseek/emulated_row_kernels.hpp"
#include "exec/device_backend.hpp"

#include <dlfcn.h>

namespace ferry::deepseek {

result<row_kernels const*> row_kernels_of(device const& where) {
  device::state const& about = where.about();
  if (about.kind == device_kind::emulated) return &emulated_row_kernels(about.lanes);
  if (about.backend == nullptr) {
    return fail(error_code::unsupported, "the model's kernels of {} are not launched",
                where.name());
  }
  // The library that the backend's table lies in holds the model's as well.
  Dl_info file{};
  void* const library =
      dladdr(about.backend, &file) != 0 ? dlopen(file.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  auto const entry = library != nullptr
                         ? reinterpret_cast<row_kernels_entry>(dlsym(library, "ferry_row_kernels"))
                         : nullptr;
  if (entry == nullptr) {
    return fail(error_code::unsupported, "the library of {} holds no kernels of the model",
                where.name());
  }
  return entry();
}

}  // namespace ferry::deepseek
