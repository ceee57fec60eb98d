// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The kernels of a vendor's backend library, for its host half. FERRY_BACKEND_ARCHITECTURES lists
// what they were compiled for.

#include "exec/gpu/backend_kernels.hpp"

#include "kernels/gpu_kernels.hpp"

namespace ferry {

backend_kernels kernels_of_backend() {
  gpu_kernels const& all = exchange_kernels_of_gpu();
  return {&all, FERRY_BACKEND_ARCHITECTURES, all.lanes, all.load};
}

}  // namespace ferry
