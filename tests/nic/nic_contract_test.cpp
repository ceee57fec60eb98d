// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What every transport keeps to, over queues that are written directly, for each vendor.

#include "contract/transport_contract.hpp"

#include "contract/faulty_transport.hpp"
#include "nic/direct_ranks.hpp"
#include "transport/device_verbs/status_error.hpp"

namespace ferry::test {
namespace {

transport_maker direct(nic_vendor vendor, nic_faults f, std::uint32_t entries) {
  return [=](int rank, std::vector<mapped_window> windows) {
    return make_emulated(rank, windows, vendor, f, {.queue_entries = entries});
  };
}

std::vector<transport_case> cases() {
  std::vector<transport_case> all;
  for (nic_vendor const v : all_vendors) {
    std::string const name = device_verbs::to_string(v);
    all.push_back({name, direct(v, {}, 64), 64});
    all.push_back({name + "_in_order", direct(v, {.reorder = 0}, 256), 256});
    all.push_back({name + "_late_and_out_of_order",
                   direct(v, {.seed = 5, .reorder = 1000, .delay = 20, .late = 300}, 32), 32});
    all.push_back({name + "_that_is_often_full", direct(v, {.seed = 9, .late = 100}, 4), 4});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(nic, transport_contract, ::testing::ValuesIn(cases()),
                         [](auto const& c) { return c.param.name; });

using namespace std::chrono_literals;

class nic_faults_test : public ::testing::TestWithParam<nic_vendor> {
 protected:
  nic_faults_test() {
    for (int r = 0; r < 2; ++r) memory_.push_back(window::plain(4096).value());
    for (window& w : memory_) windows_.push_back({w.bytes()});
  }
  std::unique_ptr<transport> make(nic_faults f, emulated_nic** nic = nullptr) {
    return make_emulated(0, windows_, GetParam(), f, {.queue_entries = 64}, nic);
  }
  std::uint64_t word(int rank, std::size_t at) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(
                               memory_[static_cast<std::size_t>(rank)].data() + at))
        .load(std::memory_order_acquire);
  }
  bool arrives(int rank, std::size_t at, std::uint64_t value) {
    auto const end = std::chrono::steady_clock::now() + 20s;
    while (word(rank, at) != value) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  std::vector<window> memory_;
  std::vector<mapped_window> windows_;
  std::byte const row_[64]{};
};

TEST_P(nic_faults_test, says_so_in_progress_flush_and_every_later_post) {
  auto const net = make({.fail = 1024, .failure = nic_status::remote_operation});
  ASSERT_TRUE(net->put({1, 64, 64}, row_));
  auto const is_failure = [](auto const& r) {
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::transport) << r.error().message;
    EXPECT_NE(r.error().message.find("rank 1"), std::string::npos) << r.error().message;
    EXPECT_NE(r.error().message.find("remote_operation"), std::string::npos) << r.error().message;
  };
  is_failure(net->flush(1, 10s));
  is_failure(net->progress());
  is_failure(net->put({1, 64, 64}, row_));
  is_failure(net->signal({1, 0, 8}, 1, strength::all_earlier));
}

TEST_P(nic_faults_test, names_every_status_and_calls_a_silent_peer_unreachable) {
  for (nic_status const s :
       {nic_status::local_length, nic_status::local_operation, nic_status::local_protection,
        nic_status::bad_response, nic_status::remote_invalid, nic_status::remote_access,
        nic_status::remote_operation, nic_status::retry_exceeded, nic_status::receiver_not_ready}) {
    auto const net = make({.fail = 1024, .failure = s});
    ASSERT_TRUE(net->put({1, 64, 64}, row_));
    result<void> const r = net->flush(1, 10s);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code,
              s == nic_status::retry_exceeded ? error_code::unreachable : error_code::transport);
    auto const wanted = device_verbs::error_of(s, 1).message;
    EXPECT_EQ(r.error().message, wanted);
  }
}

TEST_P(nic_faults_test, never_shows_a_signal_that_would_cover_a_lost_put) {
  auto const net = make({.lose = 1024});
  ASSERT_TRUE(net->put({1, 64, 64}, row_));
  ASSERT_TRUE(net->signal({1, 0, 8}, 1, strength::all_earlier));
  ASSERT_TRUE(net->signal({1, 8, 8}, 1, strength::this_put));
  ASSERT_TRUE(net->signal({0, 0, 8}, 1, strength::all_earlier)) << "the other rank is as before";
  EXPECT_TRUE(arrives(1, 8, 1));
  EXPECT_TRUE(arrives(0, 0, 1));
  result<void> const flushed = net->flush(1, 100ms);
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, error_code::timeout);
  EXPECT_NE(flushed.error().message.find("rank 1"), std::string::npos) << flushed.error().message;
  EXPECT_EQ(word(1, 0), 0u);
  EXPECT_TRUE(net->flush(0, 5s));
}

// The emulator really takes the freedom that a network has, and refuses nothing on the way.
TEST_P(nic_faults_test, carries_operations_out_of_order_without_a_refusal) {
  emulated_nic* nic = nullptr;
  auto const net =
      make({.reorder = 1024, .delay = 100, .longest_delay = std::chrono::microseconds(500)}, &nic);
  for (std::uint64_t n = 1; n <= 200; ++n) {
    for (int i = 0; i < 6; ++i)
      while (net->put({1, 64, 64}, row_).value() == post::try_again) std::this_thread::yield();
    while (net->signal({1, 0, 8}, n, strength::all_earlier).value() == post::try_again)
      std::this_thread::yield();
  }
  ASSERT_TRUE(net->flush(1, 20s));
  EXPECT_EQ(word(1, 0), 200u);
  // How many depends on whether the NIC keeps up with who posts.
  EXPECT_GT(nic->counts().out_of_order, 0u);
  EXPECT_TRUE(nic->refusals().empty());
}

TEST_P(nic_faults_test, ends_an_exchange_with_an_error_and_never_with_wrong_data) {
  constexpr auto deadline = 400ms;
  for (nic_faults const f :
       {nic_faults{.seed = 1, .fail = 12}, nic_faults{.seed = 2, .lose = 12}}) {
    auto const make_one = [&](int rank, std::vector<mapped_window> windows) {
      return make_emulated(rank, windows, GetParam(), f, {.queue_entries = 64});
    };
    int of_transport = 0;
    // A rank that is held up by the machine can miss its deadline before anything fails.
    for (int run = 0; run == 0 || (run < 5 && f.fail > 0 && of_transport == 0); ++run) {
      carried const c = carry_exchange(make_one, {.ranks = 3, .steps = 60, .timeout = deadline});
      for (std::size_t r = 0; r < 3; ++r) {
        EXPECT_EQ(c.errors[r].find("wrong data"), std::string::npos) << c.errors[r];
        EXPECT_TRUE(c.codes[r]) << "rank " << r << " noticed nothing: " << c.errors[r];
        EXPECT_LT(c.longest_call[r], deadline + 10s);
        of_transport += c.codes[r] == error_code::transport;
      }
    }
    EXPECT_EQ(of_transport > 0, f.fail > 0);
  }
}

TEST_P(nic_faults_test, carries_four_ranks_of_an_exchange) {
  auto const make_one = [&](int rank, std::vector<mapped_window> windows) {
    return make_emulated(rank, windows, GetParam(), {.reorder = 900, .late = 100},
                         {.queue_entries = 64});
  };
  carried const c = carry_exchange(make_one, {.ranks = 4, .steps = 60});
  for (std::string const& e : c.errors) EXPECT_EQ(e, "");
  EXPECT_EQ(c.steps, 4 * 60);
}

INSTANTIATE_TEST_SUITE_P(nic, nic_faults_test, ::testing::ValuesIn(all_vendors),
                         [](auto const& c) { return device_verbs::to_string(c.param); });

}  // namespace
}  // namespace ferry::test
