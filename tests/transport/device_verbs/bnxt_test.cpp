// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/device_verbs/bnxt.hpp>

#include "transport/device_verbs/format_bytes.hpp"

#include <gtest/gtest.h>

namespace ferry::device_verbs::test {
namespace {

TEST(bnxt, writes_a_write_byte_for_byte) {
  lone_queue<bnxt> q;
  EXPECT_EQ(q.written(3, sample(verb::write)),
            "04 01 03 00 00 00 00 00 00 1c 00 00 00 00 00 00\n"
            "18 16 15 14 13 12 11 10 d4 c3 b2 a1 00 00 00 00\n"
            "28 26 25 24 23 22 21 20 34 33 32 31 00 1c 00 00\n");
}

TEST(bnxt, writes_an_immediate_byte_for_byte) {
  lone_queue<bnxt> q;
  work w = sample(verb::write_with_immediate);
  w.signalled = false;
  w.bytes = 0;
  EXPECT_EQ(q.written(4, w),
            "05 00 03 00 54 53 52 51 00 00 00 00 00 00 00 00\n"
            "18 16 15 14 13 12 11 10 d4 c3 b2 a1 00 00 00 00\n"
            "28 26 25 24 23 22 21 20 34 33 32 31 00 00 00 00\n");
}

TEST(bnxt, writes_a_fenced_inline_word_byte_for_byte) {
  lone_queue<bnxt> q;
  work w = sample(verb::inline_word);
  w.fenced = true;
  EXPECT_EQ(q.written(5, w),
            "04 15 03 00 00 00 00 00 08 00 00 00 00 00 00 00\n"
            "18 16 15 14 13 12 11 10 d4 c3 b2 a1 00 00 00 00\n"
            "48 47 46 45 44 43 42 41 00 00 00 00 00 00 00 00\n");
}

TEST(bnxt, writes_a_fetch_add_byte_for_byte) {
  lone_queue<bnxt> q;
  EXPECT_EQ(q.written(6, sample(verb::fetch_add)),
            "0b 01 03 00 d4 c3 b2 a1 18 16 15 14 13 12 11 10\n"
            "48 47 46 45 44 43 42 41 00 00 00 00 00 00 00 00\n"
            "28 26 25 24 23 22 21 20 34 33 32 31 08 00 00 00\n");
}

TEST(bnxt, counts_packets_in_the_search_table_in_the_order_of_entries) {
  lone_queue<bnxt> q;
  q.counters.packet = 0xfffffa;
  work w = sample(verb::write);
  std::uint32_t const sizes[] = {0, 1, 1024, 1025, 7168};
  for (std::uint32_t i = 0; i < 5; ++i) {
    w.bytes = sizes[i];
    q.written(6 + i, w);
  }
  q.written(11, sample(verb::fetch_add));
  bnxt::announce(q.access, q.pair, q.counters, 6, 12);
  // start slot << 48 | next packet << 24 | first packet, 24 bits each
  EXPECT_EQ(q.search[6], 0x0012fffffbfffffau);
  EXPECT_EQ(q.search[7], 0x0015fffffcfffffbu);
  EXPECT_EQ(q.search[0], 0x0000fffffdfffffcu);
  EXPECT_EQ(q.search[1], 0x0003fffffffffffdu);
  EXPECT_EQ(q.search[2], 0x0006000006ffffffu);
  EXPECT_EQ(q.search[3], 0x0009000007000006u);
  EXPECT_EQ(q.counters.packet, 7u);
}

TEST(bnxt, rings_with_its_place_in_slots_and_the_round) {
  lone_queue<bnxt> q;
  q.written(0, sample(verb::write));
  bnxt::announce(q.access, q.pair, q.counters, 0, 1);
  // type 0, valid, number 0xabcd, round 0, slot 3
  EXPECT_EQ(q.doorbell, 0x0400abcd00000003u);
  for (std::uint32_t i = 1; i < 8; ++i) q.written(i, sample(verb::write));
  bnxt::announce(q.access, q.pair, q.counters, 1, 8);
  EXPECT_EQ(q.doorbell, 0x0400abcd01000000u) << "the next round, slot 0";
  bnxt::announce(q.access, q.pair, q.counters, 0xfffffff8, 0);
  EXPECT_EQ(q.doorbell, 0x0400abcd00000000u) << "counters wrapped";
}

TEST(bnxt, reads_a_completion_once_its_phase_has_turned) {
  lone_queue<bnxt> q;
  EXPECT_FALSE(bnxt::read(q.access, q.pair, 0).there) << "phase 0 is nobody's at first";
  q.poke(0, 0, {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 5, 0, 0, 0});
  q.poke(0, 24, {0x01, 0x00, 0x00, 0x00});
  completion const c = bnxt::read(q.access, q.pair, 0);
  EXPECT_TRUE(c.there);
  EXPECT_EQ(c.status, nic_status::ok);
  EXPECT_EQ(c.done & c.counted, 5u);
  EXPECT_EQ(c.counted, 7u);
  EXPECT_FALSE(bnxt::read(q.access, q.pair, 8).there);
  q.poke(0, 24, {0x00});
  EXPECT_TRUE(bnxt::read(q.access, q.pair, 8).there);
}

TEST(bnxt, reads_errors_and_what_belongs_to_another_queue) {
  lone_queue<bnxt> q;
  q.poke(0, 0, {0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 5, 0, 0, 0});
  q.poke(0, 24, {0x01, 0x07, 0x00, 0x00});
  EXPECT_EQ(bnxt::read(q.access, q.pair, 0).status, nic_status::remote_access);
  q.poke(0, 24, {0x01, 0x0a});
  EXPECT_EQ(bnxt::read(q.access, q.pair, 0).status, nic_status::retry_exceeded);
  q.poke(0, 24, {0x1d, 0x00});
  EXPECT_EQ(bnxt::read(q.access, q.pair, 0).status, nic_status::flushed) << "a terminal one";
  q.poke(0, 24, {0x03, 0x00});
  EXPECT_EQ(bnxt::read(q.access, q.pair, 0).status, nic_status::malformed_completion)
      << "a receive's";
  q.poke(0, 24, {0x01, 0x00});
  q.poke(0, 0, {0x87});
  EXPECT_EQ(bnxt::read(q.access, q.pair, 0).status, nic_status::malformed_completion);
}

TEST(bnxt, gives_completions_back_by_the_register) {
  lone_queue<bnxt> q;
  bnxt::give_back(q.access, q.pair, 3);
  EXPECT_EQ(q.completion_doorbell, 0x4400054300000003u);
  bnxt::give_back(q.access, q.pair, 13);
  EXPECT_EQ(q.completion_doorbell, 0x4400054301000005u);
}

}  // namespace
}  // namespace ferry::device_verbs::test
