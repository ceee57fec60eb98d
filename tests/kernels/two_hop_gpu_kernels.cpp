// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The kernels of two hops, compiled for GPUs: no host launches them there yet
// (docs/decisions/0007), but what they are made of must stay code that a GPU's compiler takes.

#include "kernels/gpu_arguments.hpp"

#include <ferry/exec/gpu/gpu_team.hpp>
#include <ferry/exec/gpu/native_device.hpp>
#include <ferry/kernels/by_nodes.hpp>
#include <ferry/kernels/forward_rows.hpp>
#include <ferry/kernels/forward_sums.hpp>
#include <ferry/kernels/give_back.hpp>
#include <ferry/kernels/receive.hpp>
#include <ferry/kernels/send.hpp>
#include <ferry/transport/peer_memory.hpp>

namespace ferry {
namespace {

using native_team = gpu_team<native_device>;
using native_delivery = peer_memory_delivery<native_device>;

constexpr int most_threads = 8 * native_device::lanes;

template <class Kernel>
__device__ inline __attribute__((always_inline)) void on_team(
    gpu_arguments<Kernel> const& parameter) {
  gpu_arguments<Kernel> const& with = native_device::argument(parameter);
  __shared__ gpu_block_memory memory;
  native_team const team(with.blocks, with.teams, with.waits, memory, with.scratch,
                         with.scratch_stride);
  with.kernel(team, native_delivery(with.peers, with.own_flags, with.own_rows));
}

#define FERRY_TWO_HOP_KERNEL(name, kernel_struct)                     \
  extern "C" __global__ void FERRY_KERNEL_BOUNDS(most_threads, 4)     \
      name(FERRY_PARAMETER gpu_arguments<kernel_struct> const with) { \
    on_team(with);                                                    \
  }                                                                   \
  static_assert(sizeof(gpu_arguments<kernel_struct>) <= most_argument_bytes)

FERRY_TWO_HOP_KERNEL(ferry_send_by_nodes, by_nodes<send_rows>);
FERRY_TWO_HOP_KERNEL(ferry_forward, forward_rows);
FERRY_TWO_HOP_KERNEL(ferry_receive_by_nodes, by_nodes<receive_rows>);
FERRY_TWO_HOP_KERNEL(ferry_return_by_nodes, by_nodes<return_rows>);
FERRY_TWO_HOP_KERNEL(ferry_forward_home, forward_sums);

}  // namespace
}  // namespace ferry
