// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What the waits of a kernel on a GPU need to know, and where they say what went wrong.
#pragma once

#include <ferry/exec/flag.hpp>

#include <cstdint>

namespace ferry {

/// Goes to kernels by value. Times are in ticks of the device's clock, which counts on while
/// kernels come and go (the same one that the waits read; its rate is the host's to ask).
struct gpu_waits {
  status_record* status = nullptr;  ///< in this rank's own window (flag part)
  /// In this rank's device memory, shared by all its slots: not 0 once a wait of this rank has
  /// failed. The host may set it too, when it knows that a peer is gone. Every team then leaves.
  std::uint32_t* failed = nullptr;
  std::uint64_t timeout = 0;   ///< ticks until a wait gives up
  std::uint64_t patience = 0;  ///< ticks after which a peer may know whom this rank waits for
  std::int32_t slot = 0;       ///< for the failure record
  /// Memory of the host that the device reaches: set to 1 by the wait that records the failure,
  /// after the record; the host looks here at every call. May be null.
  std::uint32_t* told = nullptr;
};

}  // namespace ferry
