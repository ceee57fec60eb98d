// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Strips of teams of many lanes on a host: each lane is a fiber.
///
/// Lanes run in an order drawn anew each turn, so that a kernel that leaves out a sync gives wrong
/// results. Lanes of a strip that part are told so, instead of waiting for ever.
#pragma once

#include <ferry/exec/emulated/lane_launch.hpp>
#include <ferry/exec/lane_strip.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ferry {

/// What a lane knows of its strip.
class emulated_strip_lanes {
 public:
  emulated_strip_lanes(meeting_place& strip, int lane, std::int64_t index, std::int64_t count)
      : strip_(&strip), lane_(lane), index_(index), count_(count) {}

  int lane() const { return lane_; }
  std::int64_t index() const { return index_; }
  std::int64_t count() const { return count_; }
  template <int N, class T>
  T from_further(T value) const {
    static_assert(sizeof value == 4 && (N == 8 || N == 4 || N == 2 || N == 1));
    return strip_->share("from_further", lane_, value,
                         [&](auto const& of) { return of((lane_ + N) % strip_lanes); });
  }
  void sync() const { strip_->meet("sync"); }

 private:
  meeting_place* strip_;
  int lane_;
  std::int64_t index_, count_;
};

using emulated_strip = lane_strip<emulated_strip_lanes>;
static_assert(strip<emulated_strip>);

/// How many strips such a grid has, if its teams have `lanes` lanes.
constexpr int strips_of(lane_grid grid, int lanes) {
  return grid.blocks * grid.teams * (lanes / strip_lanes);
}

/// Calls kernel(strip) on every lane of a grid of teams of `lanes` lanes.
/// Errors   as fibers::run
template <class Kernel>
result<void> run_on_strips(lane_grid grid, int lanes, std::uint64_t seed, Kernel const& kernel) {
  fibers all(seed);
  int const strips = strips_of(grid, lanes);
  std::vector<meeting_place> places;
  for (int i = 0; i < strips; ++i) {
    places.emplace_back(all, strip_lanes, "strip " + std::to_string(i));
  }
  return all.run(strips * strip_lanes, [&](int i) {
    int const index = i / strip_lanes;
    kernel(emulated_strip(emulated_strip_lanes(places[static_cast<std::size_t>(index)],
                                               i % strip_lanes, index, strips)));
  });
}

}  // namespace ferry
