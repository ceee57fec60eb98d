// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The emulated device as a backend: streams are threads, memory cannot be touched by the host.
#pragma once

#include "exec/device_backend.hpp"
#include "exec/host_streams.hpp"

namespace ferry {

/// How many lanes a team of such a device has.
struct emulated_widths {
  static constexpr int narrow = 32, wide = 64;
};

/// Ordinals are the widths of its teams. It names no kernels: the layer `kernels` has
/// them.
device_backend const& emulated_backend();

/// Whether kernels for teams of that many lanes would go to their device: on a GPU a launch goes to
/// the calling thread's current one.
/// Errors   device another one is current, or none
result<void> check_current_emulated(int lanes);

/// The stream behind a handle that `make_stream` gave out.
inline host_stream& emulated_stream(void* handle) {
  return *static_cast<host_stream*>(handle);
}

}  // namespace ferry
