// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What the transport over verbs does with NICs that differ, and with ones that keep it waiting,
// shown on a stand-in for the RDMA library. Real verbs are tested in tests/roce.

#include "transport/verbs_library_double.hpp"

#include <ferry/transport/verbs.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;

/// Two ranks, each with a NIC of its own, and the words of their windows.
struct two_ranks {
  two_ranks(char const* nic_of_0, char const* nic_of_1) {
    library().holds = false;
    library().ends_with = 0;
    library().adds = library().reads = library().writes = 0;
    char const* const nics[] = {nic_of_0, nic_of_1};
    for (int r = 0; r < 2; ++r)
      ranks[r] = make_verbs_transport(
                     r, 2, {.device = nics[r], .queue_entries = 8, .library = FERRY_VERBS_DOUBLE})
                     .value();
    for (int r = 0; r < 2; ++r) {
      auto const window = std::as_writable_bytes(std::span(words[r]));
      addresses[r] = ranks[r]->expose(window).value();
    }
    for (int r = 0; r < 2; ++r) connect(r);
  }
  void connect(int r) {
    for (int peer = 0; peer < 2; ++peer) ranks[r]->connect(peer, addresses[peer]).value();
  }
  /// The word of rank 1 that rank 0 signals.
  void signal(std::uint64_t value) {
    ASSERT_EQ(ranks[0]->signal({1, 0, 8}, value, strength::all_earlier).value(), post::posted);
    ranks[0]->flush(1, 10s).value();
    EXPECT_EQ(words[1][0], value);
  }

  std::array<std::array<std::uint64_t, 8>, 2> words{};
  std::unique_ptr<transport> ranks[2];
  std::vector<std::byte> addresses[2];
};

TEST(verbs_transport, adds_where_the_nics_of_both_ends_can) {
  two_ranks two("adds", "adds");
  two.signal(5);
  two.signal(9);
  EXPECT_EQ(library().adds, 2);
}

TEST(verbs_transport, reads_and_writes_where_one_end_has_no_atomics) {
  for (auto const& [mine, theirs] : {std::pair{"adds", "plain"}, {"plain", "adds"}}) {
    two_ranks two(mine, theirs);
    two.signal(5);
    two.signal(9);
    EXPECT_EQ(library().adds, 0) << mine << " to " << theirs;
    EXPECT_EQ(library().reads, 2) << mine << " to " << theirs;
  }
}

TEST(verbs_transport, forgets_what_ended_before_it_connected_anew) {
  two_ranks two("adds", "adds");
  std::uint64_t const value = 3;
  auto const put = [&] {
    return two.ranks[0]->put({1, 8, 8}, reinterpret_cast<std::byte const*>(&value));
  };
  library().ends_with = 12;  // nobody answered
  ASSERT_TRUE(put());
  library().ends_with = 0;
  two.connect(0);
  ASSERT_TRUE(put()) << "an old failure";
  ASSERT_TRUE(two.ranks[0]->flush(1, 10s));
  EXPECT_EQ(two.words[1][1], value);
}

TEST(verbs_transport, ends_a_fetch_in_time_while_another_is_under_way) {
  two_ranks two("adds", "adds");
  two.words[1][2] = 77;
  library().holds = true;
  std::atomic<bool> second_ended = false;
  std::uint64_t first_read = 0;
  std::thread first([&] {
    result<void> const r =
        two.ranks[0]->fetch({1, 16, 8}, reinterpret_cast<std::byte*>(&first_read), 60s);
    EXPECT_TRUE(r) << r.error().message;
    EXPECT_TRUE(second_ended);
  });
  while (library().reads == 0) std::this_thread::yield();
  std::uint64_t read = 0;
  result<void> const second =
      two.ranks[0]->fetch({1, 16, 8}, reinterpret_cast<std::byte*>(&read), 20ms);
  second_ended = true;
  library().holds = false;
  first.join();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, error_code::timeout);
  EXPECT_EQ(first_read, 77u);
}

}  // namespace
}  // namespace ferry::test
