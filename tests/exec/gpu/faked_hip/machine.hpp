// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What the played runtime says of the machine; a test sets it.
#pragma once

#include <string>

namespace ferry::test {

struct faked_machine {
  int devices = 0;
  std::string architecture;  ///< with features, as the vendor says it: "gfx942:sramecc+:xnack-"
  bool has_code = true;      ///< whether the program's kernels can be loaded
  int current = 0;           ///< the thread's device
  int relaxed_calls = 0;     ///< allocations made while captures were no matter
};
/// Lies in the played library, which the program and the backend share.
faked_machine& machine();

}  // namespace ferry::test
