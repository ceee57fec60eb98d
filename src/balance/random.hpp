// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Numbers without a pattern that are the same on every machine (splitmix64).
#pragma once

#include <cstdint>

namespace ferry::balance {

inline std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// In [0, limit); limit is at least 1.
inline int next_below(std::uint64_t& state, int limit) {
  return static_cast<int>((next_random(state) >> 32) * static_cast<std::uint64_t>(limit) >> 32);
}

}  // namespace ferry::balance
