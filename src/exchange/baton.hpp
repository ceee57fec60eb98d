// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Turns of threads, of which one at a time may go on.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/exchange/turn_order.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>

namespace ferry {

/// Handed from one to the next in the order that `turn_order` says. A failure of one ends the wait
/// of all others.
class baton {
 public:
  /// `done` is memory for as many flags as there are threads.
  baton(turn_order turns, std::span<bool> done, std::chrono::milliseconds timeout);

  /// Waits for the first turn.
  /// Errors   what another one failed with; timeout
  result<void> wait(int index);
  /// Hands over, and waits for the next turn.
  result<void> yield(int index);
  /// This one has no more turns.
  void finish(int index);
  /// The first failure stays.
  void fail(error why);
  std::optional<error> failed() const;

 private:
  result<void> wait_for_turn(std::unique_lock<std::mutex>& lock, int index);
  void pass_on();

  mutable std::mutex guard_;
  std::condition_variable changed_;
  turn_order turns_;
  std::span<bool> done_;
  std::chrono::milliseconds timeout_;
  int turn_;
  std::optional<error> failed_;
};

/// Numbered calls of several threads, each of which may begin when the one before has returned.
class call_gate {
 public:
  explicit call_gate(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  /// Waits until all calls below `number` have left.
  /// Errors   what another thread failed with; timeout
  result<void> enter(int number);
  void leave();
  void fail(error why);
  std::optional<error> failed() const;

 private:
  mutable std::mutex guard_;
  std::condition_variable changed_;
  std::chrono::milliseconds timeout_;
  int next_ = 0;
  std::optional<error> failed_;
};

}  // namespace ferry
