// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The emulated device as a backend: streams are threads, memory cannot be touched by the host.
#pragma once

#include "exec/device_backend.hpp"
#include "exec/host_streams.hpp"

namespace ferry {

/// Ordinals are the widths 32 and 64 of its teams. It names no kernels: the layer `kernels` has
/// them.
device_backend const& emulated_backend();

/// The stream behind a handle that `make_stream` gave out.
inline host_stream& emulated_stream(void* handle) {
  return *static_cast<host_stream*>(handle);
}

}  // namespace ferry
