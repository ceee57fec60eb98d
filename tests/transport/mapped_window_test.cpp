// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/mapped_window.hpp>

#include <ferry/transport/shared_memory.hpp>

#include <gtest/gtest.h>

#include <array>

namespace {

using namespace ferry;

struct memory {
  alignas(64) std::array<std::byte, 256> bytes{};
};

TEST(mapped_window, is_written_without_a_look_at_sleepers_unless_it_says_where_they_are) {
  // All ones where counters of sleepers could be: whoever looked there would find sleepers.
  memory own, peer;
  mapped_window const plain{peer.bytes};
  EXPECT_EQ(plain.asleep_offset, mapped_window::no_sleepers);
  auto const net = make_shared_memory_transport(0, {{own.bytes}, plain});
  EXPECT_EQ(net->signal({1, 248, 8}, 5, strength::all_earlier).value(), post::posted);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(peer.bytes.data() + 248), 5u);
}

TEST(mapped_window, keeps_a_counter_of_sleepers_for_each_writer) {
  memory own, peer;
  auto* const asleep = reinterpret_cast<std::uint32_t*>(peer.bytes.data() + 64);
  asleep[0] = 1;  // somebody sleeps on a word of rank 0
  auto const net = make_shared_memory_transport(0, {{own.bytes, 64}, {peer.bytes, 64}});
  EXPECT_EQ(net->signal({1, 0, 8}, 5, strength::all_earlier).value(), post::posted);
  // Waking changes nothing: the sleeper takes itself off.
  EXPECT_EQ(asleep[0], 1u);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(peer.bytes.data()), 5u);
}

}  // namespace
