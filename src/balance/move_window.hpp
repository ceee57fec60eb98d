// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The windows that experts arrive in: how much each source has sent, and a place for every spare
/// slot. A place has one writer in a round, the source of the move that it belongs to.
#pragma once

#include <ferry/base/types.hpp>
#include <ferry/memory/layout.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ferry {

/// Of bytes that come in parts, each but the last a multiple of 8 long: any changed, lost or
/// swapped word changes it.
class byte_sum {
 public:
  void add(std::span<std::byte const> part) {
    for (std::size_t i = 0; i < part.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, part.data() + i, part.size() - i < 8 ? part.size() - i : 8);
      sum_ = std::rotl((sum_ ^ word) * 0x9E3779B97F4A7C15u, 29);
    }
  }
  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 0xCBF29CE484222325u;
};

/// What lies where in a rank's window.
class move_window {
 public:
  move_window() = default;
  move_window(int ranks, int spare_slots, std::size_t expert_bytes) {
    // Each writer's word on a line of its own.
    layout_.add(part::sent, static_cast<std::size_t>(ranks), 128, 128);
    layout_.add(part::decision, 1, 128, 128);
    layout_.add(part::sums, static_cast<std::size_t>(spare_slots), 128, 128);
    layout_.add(part::experts, static_cast<std::size_t>(spare_slots),
                round_up(expert_bytes, std::size_t{128}), 4096);
  }
  std::size_t bytes() const { return layout_.bytes(); }

  /// Round and bytes that a source has written in it: published by release, after them.
  std::atomic_ref<std::uint64_t> sent(std::byte* window, int source) const {
    return std::atomic_ref(word(window, part::sent, source));
  }
  /// Ranks that learn how an agreement ended, and ranks that do not because another died within it,
  /// decide here whether the round's change takes place: the first one's word stands for all. The
  /// window is mapped by all of them, so it outlives the rank that it belongs to.
  /// Returns  the decision, be it this call's or an earlier one's
  bool decide(std::byte* window, std::uint64_t round, bool change) const {
    std::atomic_ref const decision(word(window, part::decision, 0));
    std::uint64_t found = decision.load(std::memory_order_acquire);
    std::uint64_t const mine = round << 1 | static_cast<std::uint64_t>(change);
    while (found >> 1 != round)
      if (decision.compare_exchange_weak(found, mine, std::memory_order_acq_rel)) return change;
    return (found & 1) != 0;
  }
  /// What the expert's bytes must add up to; covered by `sent`.
  std::uint64_t& sum(std::byte* window, int spare) const { return word(window, part::sums, spare); }
  std::byte* expert(std::byte* window, int spare) const {
    return window + layout_.offset(part::experts, static_cast<std::size_t>(spare));
  }

  /// A word for `sent`: rounds have 24 bits, their bytes 40.
  static std::uint64_t progress(std::uint64_t round, std::uint64_t bytes) {
    return round << 40 | bytes;
  }
  static bool has_reached(std::uint64_t word, std::uint64_t round, std::uint64_t bytes) {
    constexpr std::uint64_t low = (std::uint64_t{1} << 40) - 1;
    return word >> 40 == (round & (low >> 16)) && (word & low) >= bytes;
  }

 private:
  enum class part { sent, decision, sums, experts, count_ };
  std::uint64_t& word(std::byte* window, part which, int item) const {
    return *reinterpret_cast<std::uint64_t*>(window +
                                             layout_.offset(which, static_cast<std::size_t>(item)));
  }
  field_layout<part> layout_;
};

}  // namespace ferry
