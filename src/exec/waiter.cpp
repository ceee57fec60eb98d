// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/waiter.hpp>

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

namespace ferry {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds longest_sleep{50};
// Of a word that comes without a wake-up: what a nap costs in latency, and in looks at the word.
constexpr std::chrono::nanoseconds shortest_nap{50'000};
constexpr std::chrono::nanoseconds longest_nap{1'000'000};

bool reached(awaited const& what, std::uint64_t value) {
  return has_reached(what.kind, value, what.epoch);
}

std::uint64_t load(std::uint64_t const* word, std::memory_order order) {
  return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(order);
}

// Sleeps while the word's lower half (little-endian: its address) is `seen`. Any reason to come
// back is a good one: the caller looks at the word again.
void futex_wait(std::uint64_t const* word, std::uint32_t seen, std::chrono::nanoseconds at_most) {
  auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  timespec limit{static_cast<time_t>(seconds.count()),
                 static_cast<long>((at_most - seconds).count())};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

}  // namespace

void wake_sleepers(std::uint64_t const* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool waiter::sleep_once(awaited const& what, std::uint64_t const* word, std::uint64_t& value,
                        std::chrono::nanoseconds at_most) {
  std::atomic_ref asleep(asleep_[what.rank]);
  asleep.fetch_add(1, std::memory_order_seq_cst);
  value = load(word, std::memory_order_seq_cst);
  if (!reached(what, value)) futex_wait(word, static_cast<std::uint32_t>(value), at_most);
  asleep.fetch_sub(1, std::memory_order_seq_cst);
  value = load(word, std::memory_order_acquire);
  return reached(what, value);
}

bool waiter::wait_longer(awaited const& what, std::uint64_t const* word, std::uint64_t& value) {
  for (int turn = 0; turn < settings_.spin_turns; ++turn) {
    FERRY_PAUSE();
    value = load(word, std::memory_order_acquire);
    if (reached(what, value)) return true;
  }
  for (int turn = 0; turn < settings_.yield_turns; ++turn) {
    sched_yield();
    value = load(word, std::memory_order_acquire);
    if (reached(what, value)) return true;
  }
  auto const start = clock::now();
  auto const deadline = start + settings_.timeout;
  auto next_look = start + longest_sleep;
  // Other blocks and slots of this rank say so in the same word: only one's own is taken back.
  std::atomic_ref waiting(status_->waiting);
  std::uint64_t const said = 1 + static_cast<std::uint64_t>(what.rank);
  auto const writer = static_cast<std::size_t>(what.rank);
  bool const wakes = writer >= settings_.cannot_wake.size() || !settings_.cannot_wake[writer];
  std::chrono::nanoseconds nap = wakes ? longest_sleep : shortest_nap;
  bool arrived = false;
  while (!failed()) {
    auto const now = clock::now();
    auto const until = std::min(deadline, next_look);
    if (now < until) {
      arrived = sleep_once(what, word, value, std::min<std::chrono::nanoseconds>(until - now, nap));
      if (arrived) break;
      if (!wakes) nap = std::min(2 * nap, longest_nap);
      continue;
    }
    // Slow enough that a peer may want to know whom this rank waits for.
    waiting.store(said, std::memory_order_relaxed);
    failure found{error_code::timeout, what.rank, what, settings_.slot,
                  value >> epoch_shift(what.kind)};
    bool const expired = now >= deadline;
    bool const hopeless = watch_ && watch_(what, expired, found);
    // What the watch took its time for may have come meanwhile; a peer that left in good order may
    // have written its word before it went.
    value = load(word, std::memory_order_acquire);
    arrived = reached(what, value);
    if (arrived) break;
    if (hopeless || expired) {
      fail(found);
      break;
    }
    next_look = clock::now() + longest_sleep;
  }
  std::uint64_t mine = said;
  waiting.compare_exchange_strong(mine, 0, std::memory_order_relaxed);
  return arrived;
}

failure waiter::what_failed() const {
  if (failed_.load(std::memory_order_acquire) != 0) return failure_;
  std::atomic_ref state(status_->failed);
  while (state.load(std::memory_order_acquire) != status_record::complete) sched_yield();
  return status_->record;
}

void waiter::fail(failure const& f) {
  if (recording_.exchange(1, std::memory_order_acq_rel) != 0) return;
  failure_ = f;
  // Several microbatches share the rank's one record; the rank's first failure stays in it.
  std::atomic_ref state(status_->failed);
  std::uint64_t none = 0;
  if (state.compare_exchange_strong(none, status_record::being_written)) {
    status_->record = f;
    state.store(status_record::complete, std::memory_order_release);
  }
  failed_.store(1, std::memory_order_release);
}

}  // namespace ferry
