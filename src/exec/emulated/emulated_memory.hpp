// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Memory of emulated devices, which the host cannot touch.
///
/// Programs hold device addresses, at which nothing is mapped that may be read or written: a host
/// access faults, as it would on a machine with a GPU. The memory itself lies a fixed distance
/// further on; only copies and launched kernels, which translate their arguments, know it.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/exec/device.hpp>

#include <cstddef>

namespace ferry::emulated_memory {

/// Zeroed.
/// Errors   out_of_memory
result<void*> allocate(memory_kind kind, std::size_t bytes);
/// `at` is nullptr or comes from `allocate`.
void release(void* at);

/// Where a device address, or one of pinned memory, really lies; null for null.
/// Errors   invalid_argument it is memory of the host
result<void*> reached_by_device(void const* at);

/// The same for copies, which also reach memory of the host.
void* reached_by_copy(void const* at);

}  // namespace ferry::emulated_memory
