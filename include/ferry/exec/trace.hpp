// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// When what ran: spans that are written down while a program runs, without disturbing it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

/// One piece of work.
struct trace_span {
  char const* name = "";   ///< must outlive the trace
  std::int16_t queue = 0;  ///< 0 compute, 1 communication
  std::int16_t microbatch = 0;
  std::int32_t layer = -1;
  std::int32_t step = 0;
  char const* phase = "";     ///< what the step is part of; must outlive the trace
  std::int64_t begin_ns = 0;  ///< of the steady clock, which the processes of a machine share
  std::int64_t end_ns = 0;
};

/// A fixed buffer of spans. What does not fit is counted and left out.
/// Order    any thread may add; `spans` is for when nobody does
class trace {
 public:
  explicit trace(std::size_t capacity) : spans_(capacity) {}

  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  void add(trace_span const& span) {
    std::size_t const at = used_.fetch_add(1, std::memory_order_relaxed);
    if (at < spans_.size()) spans_[at] = span;
  }
  std::span<trace_span const> spans() const {
    std::size_t const used = used_.load(std::memory_order_acquire);
    return std::span(spans_).first(used < spans_.size() ? used : spans_.size());
  }
  /// Spans that found no room.
  std::size_t dropped() const {
    std::size_t const used = used_.load(std::memory_order_acquire);
    return used < spans_.size() ? 0 : used - spans_.size();
  }

 private:
  std::vector<trace_span> spans_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace ferry
