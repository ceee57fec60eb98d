// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/device_verbs/mlx5.hpp>

#include "transport/device_verbs/format_bytes.hpp"

#include <gtest/gtest.h>

namespace ferry::device_verbs::test {
namespace {

TEST(mlx5, writes_a_write_byte_for_byte) {
  lone_queue<mlx5> q;
  EXPECT_EQ(q.written(0x10203, sample(verb::write)),
            "00 02 03 08 00 ab cd 03 00 00 00 08 00 00 00 00\n"
            "10 11 12 13 14 15 16 18 a1 b2 c3 d4 00 00 00 00\n"
            "00 00 1c 00 31 32 33 34 20 21 22 23 24 25 26 28\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n");
}

TEST(mlx5, leaves_the_data_of_an_empty_write_out) {
  lone_queue<mlx5> q;
  work w = sample(verb::write);
  w.bytes = 0;
  w.signalled = false;
  // A data segment of 0 bytes would be read as one of 2^31.
  EXPECT_EQ(q.written(5, w),
            "00 00 05 08 00 ab cd 02 00 00 00 00 00 00 00 00\n"
            "10 11 12 13 14 15 16 18 a1 b2 c3 d4 00 00 00 00\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n");
}

TEST(mlx5, writes_an_immediate_byte_for_byte) {
  lone_queue<mlx5> q;
  EXPECT_EQ(q.written(6, sample(verb::write_with_immediate)),
            "00 00 06 09 00 ab cd 03 00 00 00 08 51 52 53 54\n"
            "10 11 12 13 14 15 16 18 a1 b2 c3 d4 00 00 00 00\n"
            "00 00 1c 00 31 32 33 34 20 21 22 23 24 25 26 28\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n");
}

TEST(mlx5, writes_a_fenced_inline_word_byte_for_byte) {
  lone_queue<mlx5> q;
  work w = sample(verb::inline_word);
  w.fenced = true;
  EXPECT_EQ(q.written(7, w),
            "00 00 07 08 00 ab cd 03 00 00 00 88 00 00 00 00\n"
            "10 11 12 13 14 15 16 18 a1 b2 c3 d4 00 00 00 00\n"
            "80 00 00 08 48 47 46 45 44 43 42 41 00 00 00 00\n"
            "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n");
}

TEST(mlx5, writes_a_fetch_add_byte_for_byte) {
  lone_queue<mlx5> q;
  EXPECT_EQ(q.written(8, sample(verb::fetch_add)),
            "00 00 08 12 00 ab cd 04 00 00 00 08 00 00 00 00\n"
            "10 11 12 13 14 15 16 18 a1 b2 c3 d4 00 00 00 00\n"
            "41 42 43 44 45 46 47 48 00 00 00 00 00 00 00 00\n"
            "00 00 00 08 31 32 33 34 20 21 22 23 24 25 26 28\n");
}

TEST(mlx5, announces_by_the_record_and_then_the_last_entrys_first_bytes) {
  lone_queue<mlx5> q;
  q.written(0x1fffe, sample(verb::write));
  q.written(0x1ffff, sample(verb::fetch_add));
  mlx5::announce(q.access, q.pair, q.counters, 0x1fffe, 0x20000);
  EXPECT_EQ(q.doorbell_record[0], 0u) << "the receive queue's";
  EXPECT_EQ(q.doorbell_record[1], 0u) << "16 bits of 0x20000";
  EXPECT_EQ(hex(reinterpret_cast<std::byte*>(&q.doorbell), 8), "00 ff ff 12 00 ab cd 04\n");
  q.written(0x20000, sample(verb::write));
  mlx5::announce(q.access, q.pair, q.counters, 0x20000, 0x20001);
  EXPECT_EQ(hex(reinterpret_cast<std::byte*>(&q.doorbell_record[1]), 4), "00 00 00 01\n");
}

TEST(mlx5, reads_a_completion_once_its_owner_bit_has_turned) {
  lone_queue<mlx5> q;
  EXPECT_FALSE(mlx5::read(q.access, q.pair, 0).there) << "kind 15 is nobody's";
  q.poke(0, 56, {0x08, 0x00, 0xab, 0xcd, 0x12, 0x34, 0x00, 0x00});
  completion const c = mlx5::read(q.access, q.pair, 0);
  EXPECT_TRUE(c.there);
  EXPECT_EQ(c.status, nic_status::ok);
  EXPECT_EQ(c.done, 0x1235u);
  EXPECT_EQ(c.counted, 0xffffu);
  EXPECT_FALSE(mlx5::read(q.access, q.pair, 8).there) << "the owner bit of the round before";
  q.poke(0, 63, {0x01});
  EXPECT_TRUE(mlx5::read(q.access, q.pair, 8).there);
  EXPECT_FALSE(mlx5::read(q.access, q.pair, 16).there);
}

TEST(mlx5, reads_errors_and_what_belongs_to_another_queue) {
  lone_queue<mlx5> q;
  q.poke(0, 54, {0x88, 0x13, 0x08, 0x00, 0xab, 0xcd, 0x00, 0x07, 0x00, 0xd0});
  EXPECT_EQ(mlx5::read(q.access, q.pair, 0).status, nic_status::remote_access);
  q.poke(0, 55, {0x15});
  EXPECT_EQ(mlx5::read(q.access, q.pair, 0).status, nic_status::retry_exceeded);
  q.poke(0, 63, {0x20});
  EXPECT_EQ(mlx5::read(q.access, q.pair, 0).status, nic_status::malformed_completion)
      << "a receive's";
  q.poke(0, 59, {0xce, 0, 7, 0, 0});
  EXPECT_EQ(mlx5::read(q.access, q.pair, 0).status, nic_status::malformed_completion);
}

TEST(mlx5, gives_completions_back_by_their_record) {
  lone_queue<mlx5> q;
  mlx5::give_back(q.access, q.pair, 0x12345678);
  EXPECT_EQ(hex(reinterpret_cast<std::byte*>(&q.completion_record[0]), 4), "00 34 56 78\n");
  EXPECT_EQ(q.completion_record[1], 0u) << "the arming word";
}

}  // namespace
}  // namespace ferry::device_verbs::test
