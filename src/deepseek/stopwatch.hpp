// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Adds up where time goes.
#pragma once

#include <atomic>
#include <chrono>

namespace ferry::deepseek {

class stopwatch {
 public:
  /// Adds the seconds since the last lap (or the start) to `total`, which other threads may add to.
  void lap(double& total) {
    auto const now = std::chrono::steady_clock::now();
    std::atomic_ref(total).fetch_add(std::chrono::duration<double>(now - last_).count(),
                                     std::memory_order_relaxed);
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace ferry::deepseek
