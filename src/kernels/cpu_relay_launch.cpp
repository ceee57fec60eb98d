// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Compiled once per code level, as cpu_launch.cpp is.

#include "kernels/relay_kernels.hpp"

#include <ferry/exec/cpu/cpu_team.hpp>

namespace ferry {
namespace {

// There is a network wherever there are nodes, but in tests: one form of each kernel is enough.
template <class Level, class Kernel>
struct on_all_teams {
  cpu_launch const& with;
  Kernel const& kernel;

  void operator()(int index, int teams) const {
    std::byte* const scratch = with.scratch + static_cast<std::size_t>(index) * with.scratch_stride;
    cpu_team<Level> const team(index, teams, *with.waits, scratch,
                               scratch + row_scratch_bytes(kernel.frame().shape));
    kernel(team, network_delivery{with.mapped, with.out});
  }
};

template <class Level, class Kernel>
void launch(cpu_launch const& with, Kernel const& kernel) {
  // A rank whose wait failed stores nothing more into a peer's window (R9).
  if (with.waits->failed()) return;
  with.executor->run(with.blocks, on_all_teams<Level, Kernel>{with, kernel});
}

template <class Level>
constexpr relay_kernels table{launch<Level, by_nodes<send_rows>>, launch<Level, forward_rows>,
                              launch<Level, by_nodes<receive_rows>>,
                              launch<Level, by_nodes<return_rows>>, launch<Level, forward_sums>};

}  // namespace

#define FERRY_RELAYS_OF_LEVEL FERRY_JOIN(relay_kernels_, FERRY_CPU_LEVEL)
relay_kernels const& FERRY_RELAYS_OF_LEVEL() {
  return table<FERRY_CPU_LEVEL>;
}

}  // namespace ferry
