// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Direct access to the queues of an mlx5 NIC.
#pragma once

#include <ferry/transport/device_verbs/direct_nic.hpp>

#include "transport/verbs/verbs_device.hpp"

#include <memory>

namespace ferry {

/// The library that tells where queues lie.
inline constexpr char const* mlx5_library = "libmlx5.so.1";

/// Errors   unsupported `library` or its mlx5dv_init_obj is not there
result<std::unique_ptr<device_verbs::direct_nic>> open_mlx5_nic(
    std::unique_ptr<verbs_device> device, verbs_options const& options, char const* library);

}  // namespace ferry
