// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What a build without the headers of libibverbs has in their place.

#include <ferry/transport/rdma_nic.hpp>
#include <ferry/transport/verbs.hpp>

#include "base/fail.hpp"

namespace ferry {

result<std::vector<std::string>> verbs_devices(verbs_options const&) {
  return fail(error_code::unsupported, "this build of ferry has no RDMA verbs");
}

result<std::vector<std::string>> working_verbs_devices(verbs_options const& options) {
  return verbs_devices(options);
}

result<std::unique_ptr<transport>> make_verbs_transport(int, int, verbs_options, std::vector<int>) {
  return fail(error_code::unsupported, "this build of ferry has no RDMA verbs");
}

result<std::unique_ptr<device_verbs::direct_nic>> open_rdma_nic(verbs_options const&) {
  return fail(error_code::unsupported, "this build of ferry has no RDMA verbs");
}

}  // namespace ferry
