// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Numbers that depend on a seed alone, the same on every machine.
#pragma once

#include <cstdint>

namespace ferry::protocol_test {

class chance {
 public:
  explicit chance(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  bool once_in(int n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace ferry::protocol_test
