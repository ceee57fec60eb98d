// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The instructions that gpu_team is made of, on lanes of a host: with them, the code of teams, of
/// deliveries and of kernels is that of GPUs.
///
/// Memory is weaker than a host's: what lanes store through to peers is seen when their team
/// drains, not before. A call that all lanes of a team or of a block must make ends the launch with
/// a message when they part there.
#pragma once

#include <ferry/base/float8_codes.hpp>
#include <ferry/exec/emulated/lane_launch.hpp>
#include <ferry/exec/team.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ferry {

/// Who must call: as team.hpp says (L: a lane for itself, T: all of a team, B: all of a block).
template <int Lanes>
struct emulated_device {
  static constexpr int lanes = Lanes;
  using mask = std::conditional_t<(Lanes > 32), std::uint64_t, std::uint32_t>;
  using codes = software_codes;

  static int lane() { return lane_launch::current().lane(); }
  static int team() { return lane_launch::current().team(); }
  static int block() { return lane_launch::current().block(); }

  /// T
  static std::uint32_t broadcast(std::uint32_t value, int lane) {
    return shared("broadcast", value, [&](auto const& of) { return of(lane); });
  }
  static std::uint32_t from_lane(std::uint32_t value, int lane) {
    return shared("from_lane", value, [&](auto const& of) { return of(lane); });
  }
  static mask ballot(bool b) {
    return shared("ballot", b, [](auto const& of) {
      mask m = 0;
      for (int i = 0; i < Lanes; ++i)
        if (of(i)) m |= mask{1} << i;
      return m;
    });
  }
  template <int Step>
  static float other_half(float value) {
    return shared("other_half", value, [](auto const& of) { return of(lane() ^ Step); });
  }
  static void sync() { lane_launch::current().team_place().meet("sync"); }
  static void drain() {
    lane_launch::current().team_place().meet("drain");
    lane_launch::current().drain_stores();
  }
  /// B
  static void block_sync() { lane_launch::current().block_place().meet("block_sync"); }

  /// L, as all that follow. A word's own store and load carry the order: all lanes of a launch are
  /// one thread, and ThreadSanitizer knows no fences.
  static void release() {}
  static void release_to_bus() {}
  static void ring(std::uint64_t* at, std::uint64_t value) { store_word(at, value); }
  static void acquire() {}
  template <class T>
  static T load_word(T const* at) {
    return std::atomic_ref(*const_cast<T*>(at)).load(std::memory_order_acquire);
  }
  template <class T>
  static void store_word(T* at, T value) {
    std::atomic_ref(*at).store(value, std::memory_order_release);
  }
  static bool claim(std::uint64_t* at, std::uint64_t value) {
    std::uint64_t none = 0;
    return std::atomic_ref(*at).compare_exchange_strong(none, value, std::memory_order_relaxed);
  }
  template <class T>
  static T add(T* at, T value) {
    return std::atomic_ref(*at).fetch_add(value, std::memory_order_relaxed);
  }
  template <class T>
  static T load(std::byte const* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static piece load_piece(std::byte const* from) { return *reinterpret_cast<piece const*>(from); }
  static void store_piece(std::byte* to, piece const& v) { *reinterpret_cast<piece*>(to) = v; }
  template <class T>
  static void store_through(std::byte* base, std::uint32_t offset, T const& value) {
    lane_launch::current().store_later(base + offset, &value, sizeof value);
  }

  static void pause() { lane_launch::current().pause(); }
  /// In nanoseconds.
  static std::uint64_t clock() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  }

 private:
  template <class T, class F>
  static auto shared(char const* call, T value, F const& f) {
    lane_launch& now = lane_launch::current();
    return now.team_place().share(call, now.lane(), value, f);
  }
};

}  // namespace ferry
