// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// NICs of this machine whose queues ferry writes itself.
#pragma once

#include <ferry/transport/device_verbs/direct_nic.hpp>
#include <ferry/transport/verbs.hpp>

#include <memory>

namespace ferry {

/// Opens the NIC that `options` name (device, port, gid_index, mtu, service level, traffic class,
/// timeout, retries). libibverbs makes its queues and keys; where they lie is asked of the vendor's
/// own library: mlx5 by mlx5dv_init_obj of libmlx5. For transports of host threads: the queues and
/// the doorbell's page are memory of this process.
/// Errors   unsupported this build has no verbs, or no headers of the vendor's; the library or a
///          function of it is missing; direct access to NICs of this vendor cannot be asked for;
///          others those of make_verbs_transport
result<std::unique_ptr<device_verbs::direct_nic>> open_rdma_nic(verbs_options const& options);

}  // namespace ferry
