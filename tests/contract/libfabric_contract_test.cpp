// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What every transport keeps to, over libfabric's provider tcp on the loopback interface. Skipped
// where there is none.

#include "contract/transport_contract.hpp"

#include "contract/among_peers.hpp"
#include "contract/faulty_transport.hpp"
#include "transport/loopback_fabric.hpp"

namespace ferry::test {
namespace {

using namespace std::chrono_literals;

transport_maker libfabric(std::uint32_t entries) {
  return with_peers([entries](int rank, int num_ranks) {
    libfabric_options o = loopback_fabric();
    o.queue_entries = entries;
    return make_libfabric_transport(rank, num_ranks, o).value();
  });
}

std::vector<transport_case> cases() {
  if (why_no_fabric()) return {};
  return {
      {"libfabric", libfabric(4), 4},
      {"faulty_libfabric", faulty(libfabric(8), {.seed = 11, .delay = 20, .try_again = 60}), 64}};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(transport_contract);
INSTANTIATE_TEST_SUITE_P(fabric, transport_contract, ::testing::ValuesIn(cases()),
                         [](auto const& c) { return c.param.name; });

class libfabric_contract : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto const why = why_no_fabric()) GTEST_SKIP() << *why;
  }
};

TEST_F(libfabric_contract, has_a_provider_to_run_over) {
  EXPECT_FALSE(libfabric_domains(loopback_fabric()).value().empty());
}

// One who is gone is named by what was under way to it, or else by what finds no connection.
TEST_F(libfabric_contract, names_a_peer_that_is_gone) {
  std::vector<window> memory{window::plain(4096).value(), window::plain(4096).value()};
  libfabric_options o = loopback_fabric();
  o.connect_timeout = 4s;
  std::vector<std::unique_ptr<transport>> nets;
  std::vector<std::vector<std::byte>> addresses;
  for (std::size_t r = 0; r < 2; ++r) {
    nets.push_back(make_libfabric_transport(static_cast<int>(r), 2, o).value());
    addresses.push_back(nets.back()->expose(memory[r].bytes()).value());
  }
  for (auto const& net : nets)
    for (std::size_t r = 0; r < 2; ++r) net->connect(static_cast<int>(r), addresses[r]).value();
  std::byte const row[64]{};
  auto const end = std::chrono::steady_clock::now() + 40s;
  auto const put = [&] { return nets[0]->put({1, 64, 64}, row); };
  result<post> posted = put();
  for (; posted && *posted == post::try_again && std::chrono::steady_clock::now() < end;
       posted = put())
    std::this_thread::yield();
  ASSERT_TRUE(nets[0]->flush(1, 20s));
  EXPECT_EQ(nets[0]->failed_rank(), -1);
  std::thread leaves([gone = std::move(nets[1])]() mutable { gone.reset(); });
  while (posted && std::chrono::steady_clock::now() < end) posted = put();
  leaves.join();
  ASSERT_FALSE(posted);
  EXPECT_EQ(posted.error().code, error_code::unreachable) << posted.error().message;
  EXPECT_NE(posted.error().message.find("rank 1"), std::string::npos) << posted.error().message;
  EXPECT_EQ(nets[0]->failed_rank(), 1);
  EXPECT_FALSE(nets[0]->progress());
  EXPECT_FALSE(nets[0]->flush(1, 1s));
  EXPECT_FALSE(nets[0]->signal({1, 0, 8}, 1, strength::all_earlier));
}

// Nobody listens there any more.
TEST_F(libfabric_contract, gives_up_a_peer_that_does_not_let_it_connect) {
  window memory = window::plain(4096).value();
  libfabric_options o = loopback_fabric();
  auto gone = make_libfabric_transport(1, 2, o).value();
  auto const address = gone->expose(memory.bytes()).value();
  gone.reset();
  o.connect_timeout = 100ms;
  auto const net = make_libfabric_transport(0, 2, o).value();
  ASSERT_TRUE(net->connect(1, address));
  std::byte const row[64]{};
  auto const end = std::chrono::steady_clock::now() + 40s;
  result<post> posted = post::try_again;
  while (posted && std::chrono::steady_clock::now() < end) posted = net->put({1, 64, 64}, row);
  ASSERT_FALSE(posted);
  EXPECT_EQ(posted.error().code, error_code::unreachable) << posted.error().message;
  EXPECT_NE(posted.error().message.find("rank 1"), std::string::npos) << posted.error().message;
}

}  // namespace
}  // namespace ferry::test
