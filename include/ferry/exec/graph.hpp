// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Work that is put together once and launched often.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/exec/queue.hpp>

#include <functional>
#include <memory>

namespace ferry {

/// A captured piece of work. A launch does again what the captured calls would have done, with what
/// lies in device memory then; arguments that were given by value stay as they were.
/// Lifetime  everything that the captured calls used must outlive the graph; copies are the same
///           graph
/// Order     one launch at a time: the next begins after the last one's end
class graph {
 public:
  /// Puts the work on the queue. On the CPU its first branch is done by whoever does the queue's
  /// work, each other one by a thread of its own.
  /// Errors   invalid_argument a queue of another device; invalid_state within a capture, or a step
  ///          of an exchange is open on a slot that the graph uses; those of a broken group;
  ///          device. On a plain CPU queue also what failed while it ran
  result<void> launch(queue& q) const;

 private:
  friend result<graph> capture(queue&, std::function<result<void>()> const&);
  struct state;
  std::shared_ptr<state> state_;
};

/// Calls `work`, which puts calls on `q`, and on other queues that events connect with it; nothing
/// runs, and the calls become a graph. Queues that were drawn in must be joined to `q` by an event
/// again before `work` returns. No other thread may use these queues meanwhile, but for those of
/// `overlap`. What a replay could not repeat is refused in `work` with invalid_state: waits for any
/// queue, calls on queues outside of the capture, launches of graphs, other captures, and
/// collectives of a group.
/// Errors   invalid_state `work` is itself being captured, or the queue is, or a queue was not
///          joined again, or a step of an exchange was captured in part; what `work` returns or
///          throws; device
result<graph> capture(queue& q, std::function<result<void>()> const& work);

}  // namespace ferry
