// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The stand-in for an RDMA library, as a test finds it.
#pragma once

#include "transport/verbs_double.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace ferry::test {

inline verbs_double& library() {
  using getter = verbs_double* (*)();
  void* const loaded = ::dlopen(FERRY_VERBS_DOUBLE, RTLD_NOW | RTLD_LOCAL);
  auto const found =
      loaded ? reinterpret_cast<getter>(::dlsym(loaded, "verbs_double_of_this_process")) : nullptr;
  if (!found) throw std::runtime_error("no stand-in for the RDMA library at " FERRY_VERBS_DOUBLE);
  return *found();
}

}  // namespace ferry::test
