// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Compiled once per code level, with FERRY_CPU_LEVEL naming its tag (level_v2, ...). Everything
// here is a template over the tag, or inlined: two levels never share a symbol.

#include "kernels/cpu_kernels.hpp"

#include <ferry/exec/cpu/cpu_team.hpp>

#include <type_traits>

namespace ferry {
namespace {

// A kernel that reads its own rank's window alone needs no form of its own for peers on a network.
template <class Kernel>
constexpr bool stays_here =
    std::is_same_v<Kernel, receive_rows> || std::is_same_v<Kernel, gather_rows>;

template <class Level, class Kernel>
struct on_all_teams {
  cpu_launch const& with;
  Kernel const& kernel;

  void operator()(int index, int teams) const {
    std::byte* const scratch = with.scratch + static_cast<std::size_t>(index) * with.scratch_stride;
    // Where a network sends what it finds in staging memory, nothing orders streamed stores.
    bool const streams = with.streams && *with.streams && !with.out;
    cpu_team<Level> const team(index, teams, *with.waits, scratch,
                               scratch + row_scratch_bytes(kernel.frame.shape), streams);
    if constexpr (stays_here<Kernel>)
      kernel(team, with.mapped);
    else if (with.out)
      kernel(team, network_delivery{with.mapped, with.out});
    else
      kernel(team, with.mapped);
    // Rows that stay on this rank are read by other threads, which the queue's order covers.
    team.drain();
  }
};

template <class Level, class Kernel>
void launch(cpu_launch const& with, Kernel const& kernel) {
  // A rank whose wait failed stores nothing more into a peer's window (R9).
  if (with.waits->failed()) return;
  with.executor->run(with.blocks, on_all_teams<Level, Kernel>{with, kernel});
}

template <class Level>
constexpr cpu_kernels table{launch<Level, send_rows>, launch<Level, receive_rows>,
                            launch<Level, credit_round>, launch<Level, return_rows>,
                            launch<Level, gather_rows>};

}  // namespace

#define FERRY_KERNELS_OF_LEVEL FERRY_JOIN(cpu_kernels_, FERRY_CPU_LEVEL)
cpu_kernels const& FERRY_KERNELS_OF_LEVEL() {
  return table<FERRY_CPU_LEVEL>;
}

}  // namespace ferry
