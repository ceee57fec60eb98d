// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/rdma_nic.hpp>

#include "base/fail.hpp"
#include "transport/mlx5_nic.hpp"
#include "transport/verbs/verbs_device.hpp"

namespace ferry {
namespace {

// By the numbers that the IEEE gave to who made the NIC.
constexpr std::uint32_t mellanox[] = {0x02c9, 0x15b3};
constexpr std::uint32_t broadcom = 0x14e4, pensando = 0x1dd8;

}  // namespace

result<std::unique_ptr<device_verbs::direct_nic>> open_rdma_nic(verbs_options const& options) {
  FERRY_CHECK(validate(options));
  FERRY_TRY(std::unique_ptr<verbs_device> device, verbs_device::open(options));
  std::uint32_t const vendor = device->vendor_id();
  if (vendor == mellanox[0] || vendor == mellanox[1])
    return open_mlx5_nic(std::move(device), options, mlx5_library);
  // device_verbs/ knows what they read, but the libraries here do not tell where their queues lie.
  if (vendor == broadcom || vendor == pensando)
    return fail(error_code::unsupported,
                "no direct access to {}: rdma-core as ferry knows it has no function that tells "
                "where the queues of {} lie; verbs reach this NIC",
                device->name(), vendor == broadcom ? "bnxt_re" : "ionic");
  return fail(
      error_code::unsupported,
      "no direct access to {}: its vendor 0x{:04x} is none whose queues ferry writes; verbs "
      "reach this NIC",
      device->name(), vendor);
}

}  // namespace ferry
