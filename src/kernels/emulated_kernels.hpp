// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The exchange kernels on emulated lanes, in the form of those for GPUs.
#pragma once

#include "kernels/gpu_kernels.hpp"

namespace ferry {

/// For teams of 32 or 64 lanes. Streams are those of the emulated backend.
gpu_kernels const& emulated_kernels(int lanes);

}  // namespace ferry
