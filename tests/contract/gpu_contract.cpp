// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The contract suites' kernels for the vendor that this file is compiled for.

#include "contract_launches.hpp"
#include "kernels/gpu_arguments.hpp"

#include <ferry/exec/gpu/gpu_team.hpp>
#include <ferry/exec/gpu/native_device.hpp>
#include <ferry/exec/gpu/native_runtime.hpp>
#include <ferry/exec/gpu/native_strip.hpp>
#include <ferry/transport/peer_memory.hpp>

namespace ferry::test {
namespace {

constexpr int most_threads = 8 * native_device::lanes;

template <class Kernel>
__global__ void __launch_bounds__(most_threads)
    run_contract(FERRY_PARAMETER gpu_arguments<Kernel> const parameter) {
  gpu_arguments<Kernel> const& with = native_device::argument(parameter);
  if constexpr (std::is_same_v<Kernel, check_strips>) {
    with.kernel(lane_strip<native_strip_lanes>(native_strip_lanes{}));
  } else {
    __shared__ gpu_block_memory memory;
    gpu_team<native_device> const team(with.blocks, with.teams, with.waits, memory, with.scratch,
                                       with.scratch_stride);
    with.kernel(team,
                peer_memory_delivery<native_device>(with.peers, with.own_flags, with.own_rows));
  }
}

template <class Kernel>
void const* function_of() {
  return reinterpret_cast<void const*>(&run_contract<Kernel>);
}

template <class Kernel>
struct on_gpu {
  static_assert(sizeof(gpu_arguments<Kernel>) <= most_argument_bytes);
  static int launch(gpu_launch const& with, Kernel const& kernel) {
    gpu_arguments<Kernel> arguments{with.blocks,
                                    with.teams,
                                    with.scratch,
                                    with.scratch_stride,
                                    with.peers.flags[with.peers.rank],
                                    with.peers.rows[with.peers.rank],
                                    with.waits,
                                    with.peers,
                                    kernel};
    void* all[] = {&arguments};
    return native_runtime::launch(function_of<Kernel>(), with.blocks,
                                  with.teams * native_device::lanes, all, with.stream);
  }
};

template <class... Kernels>
int load_all(contract_launches_of<Kernels...> const*) {
  int status = 0;
  ((status = status != 0 ? status : native_runtime::load(function_of<Kernels>())), ...);
  return status;
}

constexpr contract_launches* all = nullptr;
constexpr contract_table table{contract_launches_by<on_gpu>(all), native_device::lanes,
                               [] { return load_all(all); }, native_runtime::describe};

}  // namespace
}  // namespace ferry::test

extern "C" __attribute__((visibility("default"))) ferry::test::contract_table const*
ferry_contract() {
  return &ferry::test::table;
}
