// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The kernels in a vendor's backend library, as its host half knows them.
#pragma once

namespace ferry {

struct backend_kernels {
  void const* table;          ///< a gpu_kernels of the layer `kernels`
  char const* architectures;  ///< what they were compiled for: "gfx90a gfx942"
  int lanes;                  ///< of a team
  int (*load)();              ///< loads all of them; the vendor's status
};

/// Defined with the kernels.
backend_kernels kernels_of_backend();

}  // namespace ferry
