// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/baton.hpp"

#include "base/fail.hpp"

#include <algorithm>

namespace ferry {

baton::baton(turn_order turns, std::span<bool> done, std::chrono::milliseconds timeout)
    : turns_(std::move(turns)), done_(done), timeout_(timeout) {
  std::fill(done_.begin(), done_.end(), false);
  turns_.restart();
  turn_ = turns_.next(done_);
}

result<void> baton::wait_for_turn(std::unique_lock<std::mutex>& lock, int index) {
  bool const came = changed_.wait_for(lock, timeout_, [&] { return failed_ || turn_ == index; });
  if (failed_) return *failed_;
  if (came) return {};
  return ferry::fail(error_code::timeout,
                     "microbatch {} had no turn within {} ms; it is that of microbatch {}", index,
                     timeout_.count(), turn_);
}

result<void> baton::wait(int index) {
  std::unique_lock lock(guard_);
  return wait_for_turn(lock, index);
}

void baton::pass_on() {
  turn_ = turns_.next(done_);
  changed_.notify_all();
}

result<void> baton::yield(int index) {
  std::unique_lock lock(guard_);
  if (failed_) return *failed_;
  pass_on();
  return wait_for_turn(lock, index);
}

void baton::finish(int index) {
  std::lock_guard const lock(guard_);
  done_[static_cast<std::size_t>(index)] = true;
  if (turn_ == index) pass_on();
}

void baton::fail(error why) {
  std::lock_guard const lock(guard_);
  if (!failed_) failed_ = std::move(why);
  changed_.notify_all();
}

std::optional<error> baton::failed() const {
  std::lock_guard const lock(guard_);
  return failed_;
}

result<void> call_gate::enter(int number) {
  std::unique_lock lock(guard_);
  bool const came = changed_.wait_for(lock, timeout_, [&] { return failed_ || next_ == number; });
  if (failed_) return *failed_;
  if (came) return {};
  return ferry::fail(error_code::timeout,
                     "call {} in the order of communication waited {} ms for call {}", number,
                     timeout_.count(), next_);
}

void call_gate::leave() {
  std::lock_guard const lock(guard_);
  ++next_;
  changed_.notify_all();
}

void call_gate::fail(error why) {
  std::lock_guard const lock(guard_);
  if (!failed_) failed_ = std::move(why);
  changed_.notify_all();
}

std::optional<error> call_gate::failed() const {
  std::lock_guard const lock(guard_);
  return failed_;
}

}  // namespace ferry
