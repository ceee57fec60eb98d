// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Direct access as far as it can be shown without such a NIC: what the stand-in for the vendor's
// library says of its queues is what ferry writes to.

#include <ferry/transport/rdma_nic.hpp>

#include "transport/mlx5_nic.hpp"
#include "transport/verbs_library_double.hpp"

#include <ferry/transport/device_verbs/send_queue.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace ferry::test {
namespace {

using namespace device_verbs;
using ::testing::HasSubstr;

std::unique_ptr<direct_nic> opened(char const* name) {
  verbs_options const o{.device = name, .library = FERRY_VERBS_DOUBLE};
  return open_mlx5_nic(verbs_device::open(o).value(), o, FERRY_VERBS_DOUBLE).value();
}

TEST(rdma_nic, is_told_where_queues_doorbell_and_record_lie) {
  std::unique_ptr<direct_nic> const nic = opened("adds");
  EXPECT_EQ(nic->vendor(), nic_vendor::mlx5);
  queue_pair const pair = nic->make_queue(64).value();
  EXPECT_EQ(pair.num_entries, 64u) << "as many blocks as asked for, though the library adds some";
  EXPECT_GE(pair.num_completions, pair.num_entries);
  EXPECT_EQ(pair.completion_number, 9u);
  EXPECT_FALSE(mlx5::read(cpu_nic_access{}, pair, 0).there);

  queue_counters counters = start_counters<mlx5>(pair, direct_nic::first_packet);
  send_queue<mlx5, cpu_nic_access> const queue{pair, &counters, {}};
  host_patience patience(std::chrono::seconds(10));
  work const word{.what = verb::inline_word, .remote_key = 5, .remote = 4096, .word = 77};
  ASSERT_TRUE(queue.post_alone(
      3, [&](std::uint32_t) { return word; }, patience));
  EXPECT_EQ(pair.doorbell_record[1], big(std::uint32_t{3}));
  std::uint64_t head = 0;
  std::memcpy(&head, pair.entries + 2 * mlx5::entry_bytes, sizeof head);
  EXPECT_EQ(*pair.doorbell, head) << "the start of the last entry";
  EXPECT_EQ(static_cast<std::uint32_t>(head >> 32), big(pair.number << 8 | 3));
}

TEST(rdma_nic, connects_its_queues_to_those_that_have_atomics) {
  std::unique_ptr<direct_nic> const nic = opened("adds"), plain = opened("plain");
  queue_pair const mine = nic->make_queue(8).value(), theirs = nic->make_queue(8).value();
  EXPECT_NE(mine.number, theirs.number);
  EXPECT_TRUE(nic->connect(mine, nic->endpoint_of(theirs).value()));
  auto const refused = nic->connect(mine, plain->endpoint_of(plain->make_queue(8).value()).value());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("no atomics"));
  EXPECT_EQ(nic->connect(mine, std::vector<std::byte>(3)).error().code,
            error_code::malformed_input);
  queue_pair stranger = mine;
  stranger.number = 12345;
  EXPECT_EQ(nic->endpoint_of(stranger).error().code, error_code::invalid_argument);
  EXPECT_EQ(nic->make_queue(24).error().code, error_code::invalid_argument);
}

TEST(rdma_nic, refuses_completions_that_it_cannot_read) {
  library().completion_bytes = 128;
  result<queue_pair> const made = opened("adds")->make_queue(8);
  library().completion_bytes = 64;
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::unsupported);
  EXPECT_THAT(made.error().message, HasSubstr("completions of 128"));
}

TEST(rdma_nic, says_what_is_missing_for_direct_access) {
  verbs_options const o{.device = "adds", .library = FERRY_VERBS_DOUBLE};
  struct answer {
    int vendor;
    char const* says;
  };
  for (answer const& a :
       {answer{0x14e4, "where the queues of bnxt_re lie"},
        answer{0x1dd8, "where the queues of ionic lie"}, answer{0x1234, "its vendor 0x1234"}}) {
    library().vendor = a.vendor;
    auto const nic = open_rdma_nic(o);
    library().vendor = 0;
    ASSERT_FALSE(nic);
    EXPECT_EQ(nic.error().code, error_code::unsupported);
    EXPECT_THAT(nic.error().message, HasSubstr(a.says));
  }
  auto const none = open_mlx5_nic(verbs_device::open(o).value(), o, "libno-such-mlx5.so.9");
  EXPECT_THAT(none.error().message, HasSubstr("libno-such-mlx5.so.9"));
  auto const another = open_mlx5_nic(verbs_device::open(o).value(), o, "libc.so.6");
  EXPECT_THAT(another.error().message, HasSubstr("libc.so.6 has no mlx5dv_init_obj"));
}

}  // namespace
}  // namespace ferry::test
