// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Points in the work of one queue for which others can wait.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/exec/queue.hpp>

#include <memory>

namespace ferry {

/// A point in a queue. Recorded again it stands for the new point. Copies are the same event.
/// Order    within a capture, an event recorded on a captured queue draws the queue that waits for
///          it into the capture; afterwards it is a place in the graph, and says nothing until it
///          is recorded again
class event {
 public:
  /// Errors   out_of_memory, device
  static result<event> on(device const& where);

  /// The event happens when all that stands on the queue now is done.
  /// Errors   invalid_argument the queue is of another device; invalid_state the thread captures,
  ///          and the queue takes no part; device
  result<void> record(queue& q);
  /// What is put on `q` later runs after the event. An event that was never recorded holds nothing
  /// up. A plain CPU queue waits in this call.
  /// Errors   invalid_argument the queue is of another device; invalid_state a captured queue and
  ///          an event from outside the capture, or from another one, or an event that is a place
  ///          in a graph; timeout; device
  result<void> hold(queue& q) const;

  /// Whether it has happened, or was never recorded; never blocks.
  /// Errors   invalid_state it is a place in a graph; device
  result<bool> happened() const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace ferry
