// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Teams of GPUs, and how they deliver, on emulated lanes.
#pragma once

#include <ferry/exec/emulated/emulated_device.hpp>
#include <ferry/exec/gpu/gpu_team.hpp>
#include <ferry/transport/peer_memory.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry {

template <int Lanes>
using emulated_team = gpu_team<emulated_device<Lanes>>;
template <int Lanes>
using emulated_delivery = peer_memory_delivery<emulated_device<Lanes>>;

/// What every team of a launch has.
struct memory_of_teams {
  gpu_waits waits;
  std::byte* scratch = nullptr;  ///< [teams of all blocks, stride]
  std::size_t scratch_stride = 0;
};

/// Calls f(team) on every lane of a grid, and returns when all have ended.
/// Errors   as lane_launch::run
template <int Lanes, class F>
result<void> run_on_teams(lane_grid grid, std::uint64_t seed, memory_of_teams const& with,
                          F const& f) {
  lane_launch lanes(grid, Lanes, seed);
  std::vector<gpu_block_memory> memory(static_cast<std::size_t>(grid.blocks));
  return lanes.run([&] {
    f(emulated_team<Lanes>(grid.blocks, grid.teams, with.waits,
                           memory[static_cast<std::size_t>(lanes.block())], with.scratch,
                           with.scratch_stride));
  });
}

}  // namespace ferry
