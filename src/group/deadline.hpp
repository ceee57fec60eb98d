// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// When a wait ends.
#pragma once

#include <algorithm>
#include <chrono>

namespace ferry {

using deadline = std::chrono::steady_clock::time_point;

inline deadline after(std::chrono::milliseconds timeout) {
  return std::chrono::steady_clock::now() + timeout;
}
inline bool passed(deadline end) {
  return std::chrono::steady_clock::now() >= end;
}

/// Milliseconds until `end`, rounded up so that a wait never ends before it; 0 when passed.
inline std::chrono::milliseconds until(deadline end) {
  auto const rest =
      std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return std::max(rest, std::chrono::milliseconds{0});
}

}  // namespace ferry
