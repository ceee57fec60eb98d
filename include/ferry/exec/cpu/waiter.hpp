// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How a CPU thread waits for a flag word: it spins, then yields, then sleeps, never past a
/// deadline.
///
/// A waiter that sleeps says so first (rule R11): it adds to `asleep[writer]` in its own window,
/// looks at the word once more, and sleeps on the word's lower half for at most 50 ms. A writer
/// stores the word, then looks at `asleep[itself]`, then wakes. All four accesses are seq_cst, so
/// one of the two sees the other.
#pragma once

#include <ferry/exec/flag.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace ferry {

/// Asked by a waiter every 50 ms, and once more when its deadline has passed.
/// Returns  true, with the failure filled in, when waiting on makes no sense
using peer_watch = std::function<bool(awaited const& what, bool expired, failure& found)>;

/// What the waits of one microbatch share. Safe to use from all its threads.
class waiter {
 public:
  struct settings {
    std::chrono::milliseconds timeout{30000};
    int spin_turns = 200;   ///< looks before the first yield; 0 where cores are fewer than threads
    int yield_turns = 20;   ///< looks between yields before the first sleep
    std::int32_t slot = 0;  ///< for the failure record
    /// By rank: whether its words come over a network that wakes nobody. Then naps are short.
    std::vector<bool> cannot_wake{};
  };

  /// `asleep`: this rank's window, one counter per writer. `status`: this rank's, also in the
  /// window.
  waiter(settings s, std::uint32_t* asleep, status_record* status, peer_watch watch)
      : settings_(s), asleep_(asleep), status_(status), watch_(std::move(watch)) {}

  /// Waits as the team concept's `wait` says.
  FERRY_FN bool wait(awaited const& what, std::uint64_t const* word, std::uint64_t& value) {
    value = std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_acquire);
    bool const arrived =
        has_reached(what.kind, value, what.epoch) || wait_longer(what, word, value);
    FERRY_EXPECTS(!arrived || may_be_seen(what, value),
                  "R5: no rank is ahead of one that still reads what it wrote");
    return arrived;
  }

  /// Whether a wait of this rank has failed, on this slot or another: a rank that gave up stores
  /// nothing more into a peer's window (R9).
  FERRY_FN bool failed() const {
    return failed_.load(std::memory_order_acquire) != 0 ||
           std::atomic_ref(status_->failed).load(std::memory_order_acquire) != 0;
  }
  /// This slot's first failure, else the rank's; meaningful once `failed()` and no team runs.
  failure what_failed() const;
  /// Records a failure; the first one stays. Stores nothing outside this rank's own window.
  void fail(failure const& f);

  settings const& chosen() const { return settings_; }

 private:
  // Credits may be ahead of their reader: `done` speaks of several rounds at once, and a header
  // that only says that there is room may be followed by the next one.
  static constexpr bool may_be_seen(awaited const& what, std::uint64_t value) {
    return (what.kind != flag::arrived && what.kind != flag::back) ||
           value >> epoch_shift(what.kind) ==
               what.epoch << epoch_shift(what.kind) >> epoch_shift(what.kind);
  }
  FERRY_COLD bool wait_longer(awaited const& what, std::uint64_t const* word, std::uint64_t& value);
  bool sleep_once(awaited const& what, std::uint64_t const* word, std::uint64_t& value,
                  std::chrono::nanoseconds at_most);

  settings settings_;
  std::uint32_t* asleep_;
  status_record* status_;
  peer_watch watch_;
  std::atomic<int> failed_{0};
  std::atomic<int> recording_{0};
  failure failure_{};
};

/// Wakes every thread, of any process, that sleeps on this word's lower half.
void wake_sleepers(std::uint64_t const* word);

/// The writer's half of R11: stores `value` so that it is seen after all this thread's earlier
/// stores, then wakes whoever sleeps on the word according to `asleep`.
FERRY_FN void store_and_wake(std::uint64_t* word, std::uint64_t value, std::uint32_t* asleep) {
  std::atomic_ref(*word).store(value, std::memory_order_seq_cst);
  if (std::atomic_ref(*asleep).load(std::memory_order_seq_cst) != 0) wake_sleepers(word);
}

}  // namespace ferry
