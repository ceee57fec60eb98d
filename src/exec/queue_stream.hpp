// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a queue of a device other than the CPU holds.
#pragma once

#include <ferry/exec/queue.hpp>

#include <utility>

namespace ferry {

struct queue::stream_state {
  stream_state(device on, void* handle, bool ours)
      : where(std::move(on)), stream(handle), owned(ours) {}
  ~stream_state();
  stream_state(stream_state const&) = delete;

  device where;
  void* stream;
  bool owned;
};

}  // namespace ferry
