// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What queues hold: those of the CPU, and those of other devices.
#pragma once

#include <ferry/exec/queue.hpp>

#include "exec/host_streams.hpp"

#include <ferry/exec/cpu/cpu_executor.hpp>

#include <utility>

namespace ferry {

/// The stream goes first: its jobs use the executor.
struct queue::host_state {
  host_state(int teams, host_worker by) : executor(teams), stream(by) {}
  cpu_executor executor;
  host_stream stream;
};

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
