// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What every transport keeps to, over real verbs. Skipped where there is no RDMA device; Soft-RoCE
// is enough.

#include "contract/transport_contract.hpp"

#include "contract/among_peers.hpp"

#include <ferry/transport/verbs.hpp>

namespace ferry::test {
namespace {

transport_maker verbs(std::uint32_t entries) {
  // Ranks take turns with the devices, so that packets cross a wire where there are two.
  return with_peers([entries](int rank, int num_ranks) {
    auto const devices = working_verbs_devices({}).value();
    return make_verbs_transport(rank, num_ranks,
                                {.device = devices[static_cast<std::size_t>(rank) % devices.size()],
                                 .queue_entries = entries})
        .value();
  });
}

std::vector<transport_case> cases() {
  auto const devices = working_verbs_devices({});
  if (!devices || devices->empty()) return {};
  // How soon a queue is full is the device's affair: Soft-RoCE works while it is posted to.
  return {{"verbs", verbs(64)}, {"verbs_with_short_queues", verbs(4)}};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(transport_contract);
INSTANTIATE_TEST_SUITE_P(rdma, transport_contract, ::testing::ValuesIn(cases()),
                         [](auto const& c) { return c.param.name; });

TEST(verbs_contract, has_a_device_to_run_over) {
  auto const devices = working_verbs_devices({});
  if (!devices) GTEST_SKIP() << devices.error().message;
  if (devices->empty()) GTEST_SKIP() << "this machine has no RDMA device";
}

}  // namespace
}  // namespace ferry::test
