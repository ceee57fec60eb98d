// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Where work is put, to be done in order.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/exec/device.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace ferry {

class cpu_executor;

/// Work in order on one device. A plain CPU queue runs each call on the calling thread (plus the
/// other teams of its executor) before the call returns. A CPU stream has a thread of its own, and
/// a queue of another device is a stream of that: a call returns when the work stands in it.
/// Lifetime  copies are the same queue
/// Errors    every call on a CPU stream: what failed on it before; nothing behind that is done.
///           Every call within a capture (graph.hpp) on a queue that takes no part: invalid_state
class queue {
 public:
  /// A CPU queue of one team: the calling thread.
  queue();
  /// A CPU queue of `teams` threads, the calling one included.
  /// Errors   invalid_argument teams < 1 or > 256
  static result<queue> cpu(int teams);
  /// A CPU queue with a thread of its own, which is one of the `teams`.
  /// Lifetime waits, when the last copy goes, for what was put on it
  /// Errors   invalid_argument teams < 1 or > 256; out_of_memory no thread can be had
  static result<queue> cpu_stream(int teams = 1);
  /// A new stream of the device; on the CPU a queue of one team, without a thread of its own.
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
  cpu_executor& executor() const;
  /// Threads of a CPU queue; 0 on other devices, where each launch has its own number.
  int teams() const;

  /// Whether calls return before their work is done: all but plain CPU queues.
  bool is_asynchronous() const;
  /// Whether calls are recorded into a graph now.
  /// Errors   device
  result<bool> is_capturing() const;

  /// Calls `work` when its turn comes, on the thread that does the queue's work; what it throws or
  /// returns is the queue's failure. CPU and emulated devices only.
  /// Errors   unsupported another device; on a plain CPU queue: what `work` returns
  result<void> run(std::function<result<void>()> work);

  /// Copies when its turn comes. Either side may be memory of the host, which must stay as it is
  /// until then.
  /// Errors   device
  result<void> copy(void* to, void const* from, std::size_t bytes);
  /// Errors   device
  result<void> fill(void* to, std::byte value, std::size_t bytes);

  /// Whether all that was put on it is done; never blocks.
  /// Errors   device what failed on it; invalid_state it is being captured, or the thread captures
  result<bool> done() const;
  /// Waits until all that was put on it is done.
  /// Errors   timeout after `longest`; device what failed on it; invalid_state it is being
  ///          captured, or the thread captures
  result<void> wait(std::chrono::milliseconds longest) const;

  struct stream_state;
  struct host_state;
  /// CPU queues only.
  host_state& on_host() const { return *host_; }

 private:
  std::shared_ptr<host_state> host_;
  std::shared_ptr<stream_state> stream_;
};

}  // namespace ferry
