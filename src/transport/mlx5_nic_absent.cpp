// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What a build without the headers of libmlx5 has in its place.

#include "transport/mlx5_nic.hpp"

#include "base/fail.hpp"

namespace ferry {

result<std::unique_ptr<device_verbs::direct_nic>> open_mlx5_nic(
    std::unique_ptr<verbs_device> device, verbs_options const&, char const*) {
  return fail(error_code::unsupported,
              "no direct access to {}: this build was made without infiniband/mlx5dv.h",
              device->name());
}

}  // namespace ferry
