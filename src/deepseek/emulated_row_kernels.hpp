// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The model's kernels on emulated strips, in the form of those for GPUs.
#pragma once

#include "deepseek/row_kernels.hpp"

namespace ferry::deepseek {

/// For teams of 32 or 64 lanes. Streams are those of the emulated backend.
row_kernels const& emulated_row_kernels(int lanes);

}  // namespace ferry::deepseek
