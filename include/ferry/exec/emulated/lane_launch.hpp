// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A launch of lanes on a host: where they stand, and where they meet.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/exec/emulated/fibers.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry {

/// How many teams a launch has.
struct lane_grid {
  int blocks = 1;
  int teams = 1;  ///< per block
};

/// Where the lanes of a team, or of a block, meet, each at the same call.
class meeting_place {
 public:
  meeting_place(fibers& f, int size, std::string name);

  /// Waits until all are here. Lanes that meet at different calls have parted.
  void meet(char const* call);

  /// Leaves `value`, meets, and returns what f makes of all values; then meets again.
  template <class T, class F>
  auto share(char const* call, int who, T value, F const& f) {
    static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
    std::memcpy(&left_[static_cast<std::size_t>(who)], &value, sizeof value);
    meet(call);
    auto const made = f([&](int lane) {
      T theirs;
      std::memcpy(&theirs, &left_[static_cast<std::size_t>(lane)], sizeof theirs);
      return theirs;
    });
    meet(call);
    return made;
  }

 private:
  fibers* fibers_;
  std::string name_;
  std::vector<std::uint64_t> left_;
  char const* call_ = "";
  int here_ = 0;
  std::uint64_t turn_ = 0;
};

/// One launch. Each lane is a fiber of the calling thread.
class lane_launch {
 public:
  lane_launch(lane_grid grid, int lanes, std::uint64_t seed);
  lane_launch(lane_launch const&) = delete;

  /// Calls body() on every lane.
  /// Errors   device lanes have parted at a vote or a barrier: the message says where they stand;
  ///          out_of_memory
  result<void> run(std::function<void()> const& body);

  /// The launch whose lane is calling.
  static lane_launch& current();

  lane_grid grid() const { return grid_; }
  int lane() const { return all_.current() % lanes_; }
  int team() const { return all_.current() / lanes_ % grid_.teams; }
  int block() const { return all_.current() / lanes_ / grid_.teams; }
  meeting_place& team_place() { return teams_[number()]; }
  meeting_place& block_place() { return blocks_[static_cast<std::size_t>(block())]; }

  /// Rests while something outside of the launch is to happen.
  void pause() { all_.give_way_outside(); }

  /// A store of this team that nobody sees before the team drains, or the launch ends.
  void store_later(void* to, void const* from, std::size_t bytes);
  /// Makes this team's stores, in any order.
  void drain_stores();

 private:
  struct store {
    void* to;
    std::byte bytes[16];
    std::size_t size;
  };
  std::size_t number() const { return static_cast<std::size_t>(all_.current() / lanes_); }
  void make(std::vector<store>& stores);

  lane_grid grid_;
  int lanes_;
  fibers all_;
  std::vector<meeting_place> teams_, blocks_;
  std::vector<std::vector<store>> stores_;  ///< by team
};

}  // namespace ferry
