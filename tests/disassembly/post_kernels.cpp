// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Posting to a NIC's queue as compiled for GPUs, one kernel for each vendor of NICs, so that a test
// can read in which order entry, index and doorbell are stored.

#include <ferry/exec/gpu/native_device.hpp>
#include <ferry/transport/device_verbs/formats.hpp>
#include <ferry/transport/device_verbs/gpu_nic_access.hpp>
#include <ferry/transport/device_verbs/send_queue.hpp>

namespace {

using namespace ferry;
using namespace ferry::device_verbs;

using access_of_gpu = gpu_nic_access<native_device>;
static_assert(patience<gpu_patience<native_device>>);

template <class Format>
struct posting {
  send_queue<Format, access_of_gpu> queue;
  work what;
  std::uint64_t ticks;
};

template <class Format>
__device__ inline __attribute__((always_inline)) void post_one(posting<Format> const& parameter) {
  posting<Format> const& with = native_device::argument(parameter);
  gpu_patience<native_device> how_long(with.ticks);
  static_cast<void>(with.queue.post_alone(
      1, [&](std::uint32_t) FERRY_INLINED { return with.what; }, how_long));
}

}  // namespace

#define FERRY_POST_KERNEL(vendor)                                                              \
  extern "C" __global__ void ferry_post_##vendor(FERRY_PARAMETER posting<vendor> const with) { \
    post_one(with);                                                                            \
  }
FERRY_POST_KERNEL(mlx5)
FERRY_POST_KERNEL(bnxt)
FERRY_POST_KERNEL(ionic)
