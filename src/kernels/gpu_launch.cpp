// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The exchange kernels for the vendor that this file is compiled for. One kernel for each form of
// rows (row_forms.hpp): a form that needs many registers takes none from the others.

#include "kernels/gpu_arguments.hpp"
#include "kernels/gpu_kernels.hpp"

#include <ferry/exec/gpu/gpu_team.hpp>
#include <ferry/exec/gpu/native_device.hpp>
#include <ferry/exec/gpu/native_runtime.hpp>
#include <ferry/kernels/row_forms.hpp>
#include <ferry/transport/peer_memory.hpp>

#include <algorithm>

namespace ferry {
namespace {

using native_team = gpu_team<native_device>;
using native_delivery = peer_memory_delivery<native_device>;
static_assert(delivery<native_delivery, native_team>);

constexpr int most_teams = 8;
constexpr int most_threads = most_teams * native_device::lanes;

template <class Kernel, class Run>
__device__ inline __attribute__((always_inline)) void on_team(
    gpu_arguments<Kernel> const& parameter, Run const& run) {
  gpu_arguments<Kernel> const& with = native_device::argument(parameter);
  __shared__ gpu_block_memory memory;
  native_team const team(with.blocks, with.teams, with.waits, memory, with.scratch,
                         with.scratch_stride);
  run(with.kernel, team, native_delivery(with.peers, with.own_flags, with.own_rows));
}

#define FERRY_GPU_KERNEL(name, teams_on_a_unit, kernel_struct, call)                      \
  extern "C" __global__ void FERRY_KERNEL_BOUNDS(most_threads, teams_on_a_unit)           \
      name(FERRY_PARAMETER gpu_arguments<kernel_struct> const with) {                     \
    on_team(with, [](kernel_struct const& kernel, native_team const& t,                   \
                     native_delivery const& net) FERRY_INLINED { kernel.call(t, net); }); \
  }                                                                                       \
  static_assert(sizeof(gpu_arguments<kernel_struct>) <= most_argument_bytes)

FERRY_GPU_KERNEL(ferry_send, 4, send_rows, template run<memory_rows>);
FERRY_GPU_KERNEL(ferry_send_copied, 4, send_rows, template run<copied_rows>);
FERRY_GPU_KERNEL(ferry_send_e4m3, 3, send_rows, template run<quantised_e4m3>);
FERRY_GPU_KERNEL(ferry_send_e4m3fnuz, 3, send_rows, template run<quantised_e4m3fnuz>);
FERRY_GPU_KERNEL(ferry_send_power, 3, send_rows, template run<quantised_power>);
FERRY_GPU_KERNEL(ferry_send_both, 3, send_rows, template run<quantised_both>);
FERRY_GPU_KERNEL(ferry_receive, 4, receive_rows, operator());
FERRY_GPU_KERNEL(ferry_credit, 4, credit_round, operator());
FERRY_GPU_KERNEL(ferry_return, 4, return_rows, template run<memory_sums>);
FERRY_GPU_KERNEL(ferry_return_bf16, 4, return_rows, template run<bf16_sums>);
FERRY_GPU_KERNEL(ferry_probe, 4, probe_windows, operator());
FERRY_GPU_KERNEL(ferry_gather, 4, gather_rows, template run<memory_gather>);
FERRY_GPU_KERNEL(ferry_gather_bf16, 4, gather_rows, template run<bf16_gather>);

template <class F>
void const* address_of(F* kernel) {
  return reinterpret_cast<void const*>(kernel);
}
// By the order of send_form, return_form and gather_form.
void const* const send_kernels[] = {address_of(ferry_send),       address_of(ferry_send_copied),
                                    address_of(ferry_send_e4m3),  address_of(ferry_send_e4m3fnuz),
                                    address_of(ferry_send_power), address_of(ferry_send_both)};
void const* const receive_kernels[] = {address_of(ferry_receive)};
void const* const credit_kernels[] = {address_of(ferry_credit)};
void const* const return_kernels[] = {address_of(ferry_return), address_of(ferry_return_bf16)};
void const* const gather_kernels[] = {address_of(ferry_gather), address_of(ferry_gather_bf16)};

template <class Kernel>
int launch(gpu_launch const& with, void const* function, Kernel const& kernel) {
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
  return native_runtime::launch(function, with.blocks, with.teams * native_device::lanes, all,
                                with.stream);
}

template <class F>
int for_each_kernel(gpu_kernel which, F const& f) {
  auto const all = [&](auto const& kernels) {
    for (void const* k : kernels)
      if (int const status = f(k)) return status;
    return 0;
  };
  switch (which) {
    case gpu_kernel::send: return all(send_kernels);
    case gpu_kernel::receive: return all(receive_kernels);
    case gpu_kernel::credit: return all(credit_kernels);
    case gpu_kernel::give_back: return all(return_kernels);
    default: return all(gather_kernels);
  }
}

int load_all() {
  for (int i = 0; i < static_cast<int>(gpu_kernel::count_); ++i)
    if (int const status = for_each_kernel(static_cast<gpu_kernel>(i), native_runtime::load))
      return status;
  return native_runtime::load(address_of(ferry_probe));
}

int resident_blocks(gpu_kernel which, int teams, int* blocks) {
  *blocks = INT32_MAX;
  return for_each_kernel(which, [&](void const* kernel) {
    int held = 0;
    int const status = native_runtime::resident_blocks(kernel, teams * native_device::lanes, &held);
    *blocks = std::min(*blocks, held);
    return status;
  });
}

constexpr gpu_kernels table{
    .lanes = native_device::lanes,
    .max_teams = most_teams,
    .send =
        [](gpu_launch const& with, send_rows const& k) {
          return launch(with, send_kernels[static_cast<int>(form_of(k, native_device::lanes))], k);
        },
    .receive = [](gpu_launch const& with,
                  receive_rows const& k) { return launch(with, receive_kernels[0], k); },
    .credit = [](gpu_launch const& with,
                 credit_round const& k) { return launch(with, credit_kernels[0], k); },
    .give_back =
        [](gpu_launch const& with, return_rows const& k) {
          return launch(with, return_kernels[static_cast<int>(form_of(k))], k);
        },
    .gather =
        [](gpu_launch const& with, gather_rows const& k) {
          return launch(with, gather_kernels[static_cast<int>(form_of(k))], k);
        },
    .probe = [](gpu_launch const& with,
                probe_windows const& k) { return launch(with, address_of(ferry_probe), k); },
    .load = load_all,
    .resident_blocks = resident_blocks,
    .describe = native_runtime::describe};

}  // namespace

gpu_kernels const& exchange_kernels_of_gpu() {
  return table;
}

}  // namespace ferry
