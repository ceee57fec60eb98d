// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "contract/emulated_contract.hpp"

#include "exec/emulated/emulated_backend.hpp"
#include "exec/emulated/emulated_memory.hpp"
#include "kernels/emulated_teams.hpp"

#include <ferry/exec/emulated/emulated_strip.hpp>

#include <atomic>
#include <string>

namespace ferry::test {
namespace {

std::string& last_message() {
  static thread_local std::string text;
  return text;
}

int status_of(result<void> const& outcome) {
  if (outcome) return 0;
  last_message() = outcome.error().message;
  return 1 + static_cast<int>(outcome.error().code);
}

template <class Kernel>
result<void> translate(gpu_launch& with, Kernel& kernel) {
  result<void> outcome;
  auto const one = [&]<class T>(T*& pointer) {
    result<void*> const there = emulated_memory::reached_by_device(pointer);
    if (there)
      pointer = static_cast<T*>(*there);
    else if (outcome)
      outcome = there.error();
  };
  for (int r = 0; r < max_mapped_ranks; ++r) one(with.peers.flags[r]), one(with.peers.rows[r]);
  one(with.scratch), one(with.waits.status), one(with.waits.failed), one(with.waits.told);
  kernel.pointers(one);
  return outcome;
}

template <int Lanes, class Kernel>
result<void> run_now(gpu_launch const& with, Kernel const& kernel) {
  static std::atomic<std::uint64_t> launches = 0;
  std::uint64_t const seed = ++launches;
  lane_grid const grid{with.blocks, with.teams};
  if constexpr (std::is_same_v<Kernel, check_strips>) {
    return run_on_strips(grid, Lanes, seed, kernel);
  } else {
    return run_on_teams<Lanes>(
        grid, seed, {with.waits, with.scratch, with.scratch_stride},
        [&](emulated_team<Lanes> const& t) {
          kernel(t, emulated_delivery<Lanes>(with.peers, with.peers.flags[with.peers.rank],
                                             with.peers.rows[with.peers.rank]));
        });
  }
}

template <int Lanes, class Kernel>
int launch_on(gpu_launch const& with, Kernel const& kernel) {
  gpu_launch there = with;
  Kernel args = kernel;
  if (int const status = status_of(translate(there, args))) return status;
  return status_of(
      emulated_stream(with.stream).put([there, args] { return run_now<Lanes>(there, args); }));
}

template <class Kernel>
struct on_32 {
  static int launch(gpu_launch const& with, Kernel const& k) { return launch_on<32>(with, k); }
};
template <class Kernel>
struct on_64 {
  static int launch(gpu_launch const& with, Kernel const& k) { return launch_on<64>(with, k); }
};

int load() {
  return 0;
}
char const* describe(int) {
  return last_message().c_str();
}

constexpr contract_launches* all = nullptr;
constexpr contract_table narrow{contract_launches_by<on_32>(all), 32, load, describe};
constexpr contract_table wide{contract_launches_by<on_64>(all), 64, load, describe};

}  // namespace

contract_table const& emulated_contract(int lanes) {
  return lanes == 32 ? narrow : wide;
}

}  // namespace ferry::test
