// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What every transport keeps to, over real verbs. Skipped where there is no RDMA device; Soft-RoCE
// is enough.

#include "contract/transport_contract.hpp"

#include "contract/faulty_transport.hpp"

#include <ferry/transport/verbs.hpp>

namespace ferry::test {
namespace {

/// A rank's transport together with those of its peers, all in one process, so that each window is
/// registered with the NIC that it belongs to.
class among_peers final : public transport {
 public:
  among_peers(int rank, std::vector<mapped_window> const& windows, verbs_options const& options)
      : rank_(static_cast<std::size_t>(rank)) {
    auto const ranks = static_cast<int>(windows.size());
    // Ranks take turns with the devices, so that packets cross a wire where there are two.
    auto const devices = working_verbs_devices({}).value();
    for (int r = 0; r < ranks; ++r) {
      verbs_options mine = options;
      mine.device = devices[static_cast<std::size_t>(r) % devices.size()];
      all_.push_back(make_verbs_transport(r, ranks, mine).value());
    }
    std::vector<std::vector<std::byte>> addresses;
    for (std::size_t r = 0; r < windows.size(); ++r)
      addresses.push_back(all_[r]->expose(windows[r].bytes).value());
    for (auto& net : all_)
      for (int r = 0; r < ranks; ++r)
        net->connect(r, addresses[static_cast<std::size_t>(r)]).value();
  }
  abilities what_it_can() const override { return mine().what_it_can(); }
  result<std::vector<std::byte>> expose(std::span<std::byte> window) override {
    return mine().expose(window);
  }
  result<void> connect(int rank, std::span<std::byte const> address) override {
    return mine().connect(rank, address);
  }
  result<post> put(remote_region to, std::byte const* from) override {
    return mine().put(to, from);
  }
  result<post> signal(remote_region to, std::uint64_t value, strength promise) override {
    return mine().signal(to, value, promise);
  }
  result<void> progress() override { return mine().progress(); }
  result<void> flush(int rank, std::chrono::milliseconds timeout) override {
    return mine().flush(rank, timeout);
  }
  result<void> fetch(remote_region from, std::byte* to,
                     std::chrono::milliseconds timeout) override {
    return mine().fetch(from, to, timeout);
  }
  int failed_rank() const override { return mine().failed_rank(); }

 private:
  transport& mine() const { return *all_[rank_]; }
  std::size_t rank_;
  std::vector<std::unique_ptr<transport>> all_;
};

transport_maker verbs(std::uint32_t entries) {
  return [entries](int rank, std::vector<mapped_window> windows) -> std::unique_ptr<transport> {
    return std::make_unique<among_peers>(rank, windows, verbs_options{.queue_entries = entries});
  };
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
