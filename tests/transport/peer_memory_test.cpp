// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/peer_memory.hpp>

#include "transport/team_doubles.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

using namespace ferry;
using namespace ferry::test;

// Lane by lane: `now` is the lane that runs.
struct plain_device {
  static constexpr int lanes = 32;
  static inline int now = 0;
  static inline int releases = 0;
  static int lane() { return now; }
  template <class T>
  static void store_through(std::byte* base, std::uint32_t offset, T const& value) {
    std::memcpy(base + offset, &value, sizeof value);
  }
  template <class T>
  static T load(std::byte const* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static void store_word(std::uint64_t* at, std::uint64_t value) { *at = value; }
  static void release() { ++releases; }
};
using net_type = peer_memory_delivery<plain_device>;

struct peer_memory : ::testing::Test {
  std::vector<std::vector<std::uint64_t>> flags{max_mapped_ranks, std::vector<std::uint64_t>(4)};
  alignas(16) std::byte rows[2][4096] = {};
  peer_table peers;

  peer_memory() {
    peers.rank = 1;
    for (int r = 0; r < max_mapped_ranks; ++r) {
      peers.flags[r] = reinterpret_cast<std::byte*>(flags[static_cast<std::size_t>(r)].data());
      peers.rows[r] = rows[r % 2];
    }
  }
  net_type net() const { return {peers, peers.flags[1], peers.rows[1]}; }
  template <class F>
  void on_each_lane(F const& f) {
    for (plain_device::now = 0; plain_device::now < 32; ++plain_device::now)
      f(lane_of<32>(plain_device::now), net());
    plain_device::now = 0;
  }
};

static_assert(delivery<net_type, lane_of<32>>);

TEST_F(peer_memory, puts_every_byte_and_no_other_at_any_address) {
  std::vector<std::byte> from(3000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  for (std::size_t bytes : {0u, 1u, 3u, 4u, 15u, 16u, 17u, 47u, 512u, 1000u, 2048u, 2999u})
    for (std::size_t source : {0u, 1u, 4u, 16u})
      for (std::size_t to : {0u, 16u, 20u, 33u}) {
        if (source + bytes > from.size()) continue;
        std::memset(rows, 0, sizeof rows);
        on_each_lane([&](auto const& t, auto const& n) { n.put(t, 0, to, &from[source], bytes); });
        for (std::size_t i = 0; i < sizeof rows[0]; ++i)
          ASSERT_EQ(rows[0][i], i >= to && i < to + bytes ? from[source + i - to] : std::byte{0})
              << bytes << " bytes from " << source << " to " << to << ", byte " << i;
      }
}

TEST_F(peer_memory, puts_what_each_lane_holds) {
  on_each_lane([&](auto const& t, auto const& n) {
    n.put_value(t, 0, 64, 4 * static_cast<std::uint32_t>(t.lane()),
                static_cast<std::uint32_t>(100 + t.lane()));
  });
  for (int lane = 0; lane < 32; ++lane) {
    std::uint32_t there;
    std::memcpy(&there, rows[0] + 64 + 4 * lane, 4);
    EXPECT_EQ(there, static_cast<std::uint32_t>(100 + lane));
  }
}

TEST_F(peer_memory, publishes_to_every_rank_from_its_own_lane) {
  on_each_lane([&](auto const& t, auto const& n) {
    for (int d = t.lane(); d < max_mapped_ranks; d += 32)
      n.publish(t, d, flag::done, 8, static_cast<std::uint64_t>(1000 + d));
  });
  for (int d = 0; d < max_mapped_ranks; ++d) {
    EXPECT_EQ(flags[static_cast<std::size_t>(d)][0], 0u);
    EXPECT_EQ(flags[static_cast<std::size_t>(d)][1], static_cast<std::uint64_t>(1000 + d));
  }
}

TEST_F(peer_memory, knows_its_own_window_and_releases_as_the_device_does) {
  EXPECT_EQ(net().own_flags(), peers.flags[1]);
  EXPECT_EQ(net().own_rows(), rows[1]);
  int const before = plain_device::releases;
  net().release(lane_of<32>(0));
  EXPECT_EQ(plain_device::releases, before + 1);
}

}  // namespace
