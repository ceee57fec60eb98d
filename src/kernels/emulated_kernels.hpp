// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The exchange kernels on emulated lanes, in the form of those for GPUs.
#pragma once

#include "kernels/gpu_kernels.hpp"

namespace ferry {

/// For teams of 32 or 64 lanes. Streams are those of the emulated backend.
gpu_kernels const& emulated_kernels(int lanes);

/// Runs one of the step's kernels on the calling thread, in the form that a GPU would run it in, on
/// memory that lies where the pointers say. The launch's stream is not used.
/// Errors   as lane_launch::run
template <class Kernel>
result<void> run_on_lanes(int lanes, std::uint64_t seed, gpu_launch const& with,
                          Kernel const& kernel);

}  // namespace ferry
