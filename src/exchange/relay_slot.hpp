// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a slot has beside its own frame where records take two hops.
#pragma once

#include <ferry/kernels/relay.hpp>
#include <ferry/memory/buffer.hpp>

namespace ferry {

struct exchange_core;

/// The relay's part of a slot, and the frames that the step's own kernels then run with.
struct relay_slot {
  /// Errors   out_of_memory
  static result<relay_slot> make(exchange_core const& core, int slot, step_frame const& frame);

  buffer memory;
  relay_frame frame;
  step_frame by_node;     ///< owners are those that a record goes to: of send and gather
  step_frame forwarding;  ///< with the relay's ticks
};

}  // namespace ferry
