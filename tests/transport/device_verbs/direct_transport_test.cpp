// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/device_verbs/direct_transport.hpp>

#include "nic/direct_ranks.hpp"

#include <gtest/gtest.h>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;
using device_verbs::direct_options;
using device_verbs::make_direct_transport;

class direct_transport : public ::testing::TestWithParam<nic_vendor> {
 protected:
  std::unique_ptr<emulated_nic> nic(std::uint32_t id, std::shared_ptr<registered_memory> m) {
    return std::make_unique<emulated_nic>(id, GetParam(), std::move(m), nic_faults{});
  }
};

TEST_P(direct_transport, refuses_queues_and_puts_of_sizes_that_it_cannot_have) {
  auto const m = std::make_shared<registered_memory>();
  for (direct_options const o :
       {direct_options{.queue_entries = 0}, direct_options{.queue_entries = 2},
        direct_options{.queue_entries = 48}, direct_options{.queue_entries = 1u << 20},
        direct_options{.put_bytes = 0}, direct_options{.put_bytes = 100}}) {
    auto const r = make_direct_transport(0, 2, nic(1, m), o);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::invalid_argument);
    bool const of_queue = o.put_bytes == direct_options{}.put_bytes;
    std::string const named = std::to_string(of_queue ? o.queue_entries : o.put_bytes);
    EXPECT_NE(r.error().message.find(named), std::string::npos) << r.error().message;
  }
  EXPECT_FALSE(make_direct_transport(2, 2, nic(1, m), {}));
  EXPECT_FALSE(make_direct_transport(-1, 2, nic(1, m), {}));
}

TEST_P(direct_transport, connects_by_what_the_other_exposed) {
  auto const m = std::make_shared<registered_memory>();
  std::vector<std::unique_ptr<transport>> nets;
  std::vector<window> windows;
  std::vector<std::vector<std::byte>> addresses;
  for (std::uint32_t r = 0; r < 3; ++r) {
    nets.push_back(make_direct_transport(static_cast<int>(r), 3, nic(r + 1, m), {}).value());
    windows.push_back(window::plain(4096 * (r + 1)).value());
    addresses.push_back(nets.back()->expose(windows.back().bytes()).value());
  }
  std::byte const row[8]{std::byte{1}};
  auto const early = nets[0]->put({1, 0, 8}, row);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, error_code::invalid_state);
  for (auto const& net : nets)
    for (int r = 0; r < 3; ++r)
      ASSERT_TRUE(net->connect(r, addresses[static_cast<std::size_t>(r)]));
  for (std::uint64_t from = 0; from < 3; ++from)
    for (int to = 0; to < 3; ++to)
      ASSERT_TRUE(nets[from]->signal({to, 8 * from, 8}, 100 + from, strength::all_earlier));
  for (auto const& net : nets)
    for (int r = 0; r < 3; ++r) ASSERT_TRUE(net->flush(r, 20s));
  for (window const& w : windows)
    for (std::size_t from = 0; from < 3; ++from)
      EXPECT_EQ(std::atomic_ref(*reinterpret_cast<std::uint64_t*>(w.data() + 8 * from)).load(),
                100 + from);
  // A window's own size counts, not the sender's.
  EXPECT_TRUE(nets[0]->put({2, 12280, 8}, row));
  EXPECT_FALSE(nets[2]->put({0, 12280, 8}, row));
}

TEST_P(direct_transport, refuses_addresses_that_were_cut_stretched_or_made_up) {
  auto const m = std::make_shared<registered_memory>();
  auto const net = make_direct_transport(0, 2, nic(1, m), {}).value();
  auto const other = make_direct_transport(1, 2, nic(2, m), {}).value();
  window const w = window::plain(4096).value();
  auto const right = other->expose(w.bytes()).value();
  auto const refused = [&](std::vector<std::byte> const& bytes) {
    result<void> const r = net->connect(1, bytes);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::malformed_input) << r.error().message;
    EXPECT_NE(r.error().message.find("rank 1"), std::string::npos) << r.error().message;
  };
  for (std::size_t n = 0; n < right.size(); ++n) refused({right.begin(), right.begin() + n});
  auto longer = right;
  longer.push_back({});
  refused(longer);
  auto huge = right;
  for (std::size_t i = 20; i < 28; ++i) huge[i] = std::byte{0xff};
  refused(huge);
  EXPECT_TRUE(net->connect(1, right));
}

INSTANTIATE_TEST_SUITE_P(every, direct_transport, ::testing::ValuesIn(all_vendors),
                         [](auto const& c) { return device_verbs::to_string(c.param); });

}  // namespace
}  // namespace ferry::test
