// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Adds up where time goes.
#pragma once

#include <chrono>

namespace ferry::deepseek {

class stopwatch {
 public:
  /// Adds the seconds since the last lap (or the start) to `total`.
  void lap(double& total) {
    auto const now = std::chrono::steady_clock::now();
    total += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace ferry::deepseek
