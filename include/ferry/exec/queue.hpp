// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Where work is put, to be done in order.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/exec/device.hpp>

#include <chrono>
#include <cstddef>
#include <memory>

namespace ferry {

class cpu_executor;

/// Work in order on one device. A CPU queue runs each call on the calling thread (plus the other
/// teams of its executor) before the call returns; a queue of another device is a stream of it, and
/// a call returns when the work stands in it.
/// Lifetime  copies are the same queue
class queue {
 public:
  /// A CPU queue of one team: the calling thread.
  queue();
  /// A CPU queue of `teams` threads, the calling one included.
  /// Errors   invalid_argument teams < 1 or > 256
  static result<queue> cpu(int teams);
  /// A new stream of the device; on the CPU a queue of one team.
  /// Lifetime waits, when the last copy goes, for what was put on it
  /// Errors   out_of_memory, device
  static result<queue> on(device const& where);
  /// A stream that the caller owns: a hipStream_t or cudaStream_t, also the null one.
  /// Lifetime the stream must outlive the queue, and every exchange that was given it
  /// Errors   invalid_argument the device has no streams of its own
  static result<queue> wrap(device const& where, void* stream);

  device const& where() const;
  /// The stream, null on the CPU.
  void* stream() const;

  /// CPU queues only.
  cpu_executor& executor() const { return *executor_; }
  /// Threads of a CPU queue; 0 on other devices, where each launch has its own number.
  int teams() const;

  /// Copies when its turn comes. Either side may be memory of the host, which must stay as it is
  /// until then.
  /// Errors   device
  result<void> copy(void* to, void const* from, std::size_t bytes);
  /// Errors   device
  result<void> fill(void* to, std::byte value, std::size_t bytes);

  /// Whether all that was put on it is done; never blocks.
  /// Errors   device what failed on it; invalid_state it is being captured
  result<bool> done() const;
  /// Waits until all that was put on it is done.
  /// Errors   timeout after `longest`; device what failed on it; invalid_state it is being captured
  result<void> wait(std::chrono::milliseconds longest) const;

  struct stream_state;

 private:
  std::shared_ptr<cpu_executor> executor_;
  std::shared_ptr<stream_state> stream_;
};

}  // namespace ferry
