// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/device_verbs/ionic.hpp>

#include "transport/device_verbs/format_bytes.hpp"

#include <gtest/gtest.h>

namespace ferry::device_verbs::test {
namespace {

TEST(ionic, writes_a_write_byte_for_byte_in_both_colours) {
  lone_queue<ionic> q;
  EXPECT_EQ(q.written(3, sample(verb::write)),
            "03 00 00 00 00 00 00 00 21 01 00 18 00 00 00 00\n"
            "10 11 12 13 14 15 16 18 a1 b2 c3 d4 00 00 1c 00\n"
            "20 21 22 23 24 25 26 28 00 00 1c 00 31 32 33 34\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n");
  EXPECT_EQ(q.written(11, sample(verb::write)),
            "03 00 00 00 00 00 00 00 21 01 00 08 00 00 00 00\n"
            "10 11 12 13 14 15 16 18 a1 b2 c3 d4 00 00 1c 00\n"
            "20 21 22 23 24 25 26 28 00 00 1c 00 31 32 33 34\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n");
}

TEST(ionic, leaves_the_data_of_an_empty_write_out) {
  lone_queue<ionic> q;
  work w = sample(verb::write);
  w.bytes = 0;
  w.signalled = false;
  EXPECT_EQ(q.written(0, w),
            "00 00 00 00 00 00 00 00 21 00 00 10 00 00 00 00\n"
            "10 11 12 13 14 15 16 18 a1 b2 c3 d4 00 00 00 00\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n");
}

TEST(ionic, writes_an_immediate_byte_for_byte) {
  lone_queue<ionic> q;
  EXPECT_EQ(q.written(4, sample(verb::write_with_immediate)),
            "04 00 00 00 00 00 00 00 61 01 00 18 51 52 53 54\n"
            "10 11 12 13 14 15 16 18 a1 b2 c3 d4 00 00 1c 00\n"
            "20 21 22 23 24 25 26 28 00 00 1c 00 31 32 33 34\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n");
}

TEST(ionic, writes_a_fenced_inline_word_byte_for_byte) {
  lone_queue<ionic> q;
  work w = sample(verb::inline_word);
  w.fenced = true;
  EXPECT_EQ(q.written(5, w),
            "05 00 00 00 00 00 00 00 21 00 00 1d 00 00 00 00\n"
            "10 11 12 13 14 15 16 18 a1 b2 c3 d4 00 00 00 08\n"
            "48 47 46 45 44 43 42 41 00 00 00 00 00 00 00 00\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n");
}

TEST(ionic, writes_a_fetch_add_byte_for_byte) {
  lone_queue<ionic> q;
  EXPECT_EQ(q.written(6, sample(verb::fetch_add)),
            "06 00 00 00 00 00 00 00 05 01 00 18 00 00 00 00\n"
            "10 11 12 13 14 15 16 18 a1 b2 c3 d4 41 42 43 44\n"
            "45 46 47 48 00 00 00 00 00 00 00 00 31 32 33 34\n"
            "20 21 22 23 24 25 26 28 00 00 00 00 00 00 00 00\n");
}

TEST(ionic, rings_with_its_number_and_place) {
  lone_queue<ionic> q;
  ionic::announce(q.access, q.pair, q.counters, 0, 3);
  EXPECT_EQ(q.doorbell, 0x000000abcd000003u);
  ionic::announce(q.access, q.pair, q.counters, 3, 8);
  EXPECT_EQ(q.doorbell, 0x000000abcd000000u);
}

TEST(ionic, reads_a_completion_once_its_colour_has_turned) {
  lone_queue<ionic> q;
  EXPECT_FALSE(ionic::read(q.access, q.pair, 0).there) << "colour 0 is nobody's at first";
  q.poke(0, 4, {0x00, 0x12, 0x34, 0x56});
  q.poke(0, 28, {0x00, 0xab, 0xcd, 0x41});
  completion const c = ionic::read(q.access, q.pair, 0);
  EXPECT_TRUE(c.there);
  EXPECT_EQ(c.status, nic_status::ok);
  EXPECT_EQ(c.done, 0x123456u);
  EXPECT_EQ(c.counted, 0xffffffu);
  EXPECT_FALSE(ionic::read(q.access, q.pair, 8).there);
  q.poke(0, 31, {0x40});
  EXPECT_TRUE(ionic::read(q.access, q.pair, 8).there);
}

TEST(ionic, reads_errors_and_what_belongs_to_another_queue) {
  lone_queue<ionic> q;
  q.poke(0, 24, {0, 0, 0, 9, 0x00, 0xab, 0xcd, 0x43});
  EXPECT_EQ(ionic::read(q.access, q.pair, 0).status, nic_status::remote_access);
  q.poke(0, 24, {0, 0, 0, 4, 0x00, 0xab, 0xcd, 0x63});
  EXPECT_EQ(ionic::read(q.access, q.pair, 0).status, nic_status::flushed) << "a local one";
  q.poke(0, 31, {0x61});
  EXPECT_EQ(ionic::read(q.access, q.pair, 0).status, nic_status::malformed_completion)
      << "local, without an error: nothing that was posted ends so";
  q.poke(0, 31, {0x21});
  EXPECT_EQ(ionic::read(q.access, q.pair, 0).status, nic_status::malformed_completion)
      << "a receive's";
  q.poke(0, 30, {0xce, 0x41});
  EXPECT_EQ(ionic::read(q.access, q.pair, 0).status, nic_status::malformed_completion);
}

TEST(ionic, gives_completions_back_by_the_register) {
  lone_queue<ionic> q;
  ionic::give_back(q.access, q.pair, 13);
  EXPECT_EQ(q.completion_doorbell, 0x0000000543000005u);
}

}  // namespace
}  // namespace ferry::device_verbs::test
