// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Whose turn it is among microbatches that hand over to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ferry {

/// Decides after each turn who is next. The same on all ranks, or their communication differs in
/// order (R8): it depends on nothing but how it was made and who is done.
class turn_order {
 public:
  /// In turn: 0, 1, ..., 0, 1, ...
  turn_order() = default;
  /// Drawn anew at every hand-over, the same way for the same seed. For tests.
  static turn_order seeded(std::uint64_t seed) {
    turn_order t;
    t.seeded_ = true;
    t.seed_ = seed;
    return t;
  }
  /// As listed; whoever is listed when done is passed over, and after the end of the list it goes
  /// on in turn. For tests.
  static turn_order listed(std::vector<int> turns) {
    turn_order t;
    t.turns_ = std::move(turns);
    return t;
  }

  /// Starts again from the first turn.
  void restart() {
    last_ = -1;
    place_ = 0;
    state_ = seed_;
  }

  /// The next one of those that are not done; -1 when all are.
  int next(std::span<bool const> done) {
    if (seeded_) return last_ = drawn(done);
    while (place_ < turns_.size()) {
      int const one = turns_[place_++];
      if (!done[static_cast<std::size_t>(one)]) return last_ = one;
    }
    int const size = static_cast<int>(done.size());
    for (int i = 1; i <= size; ++i) {
      int const one = (last_ + i) % size;
      if (!done[static_cast<std::size_t>(one)]) return last_ = one;
    }
    return -1;
  }

 private:
  int drawn(std::span<bool const> done) {
    std::uint64_t left = 0;
    for (bool const d : done) left += !d;
    if (left == 0) return -1;
    // SplitMix64
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    std::uint64_t skip = (x ^ (x >> 31)) % left;
    for (std::size_t i = 0; i < done.size(); ++i)
      if (!done[i] && skip-- == 0) return static_cast<int>(i);
    return -1;
  }

  int last_ = -1;
  bool seeded_ = false;
  std::uint64_t seed_ = 0, state_ = 0;
  std::vector<int> turns_;
  std::size_t place_ = 0;
};

}  // namespace ferry
