// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/send.hpp>

#include "kernels/three_ranks.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

TEST(send, puts_each_token_at_its_own_index_and_nowhere_else) {
  three_ranks all;
  // Token 0 goes to ranks 0 and 2, token 1 to nobody, token 2 to rank 1 only, by both choices.
  all.send(1, {0, 5, -1, -1, 2, 3});
  float const x[] = {10, 11, 12};
  int const there[3][3] = {{1, 0, 0}, {0, 0, 1}, {1, 0, 0}};
  for (int d = 0; d < 3; ++d)
    for (int t = 0; t < 3; ++t)
      EXPECT_EQ(all.row_at(d, 1, t), there[d][t] ? x[t] : 0.0f) << "rank " << d << " token " << t;
  for (int d = 0; d < 3; ++d)
    for (int s : {0, 2})
      for (int t = 0; t < 4; ++t) EXPECT_EQ(all.row_at(d, s, t), 0.0f) << "another's inbox";
}

TEST(send, tells_each_rank_its_own_choices_in_its_own_numbers) {
  three_ranks all;
  all.send(1, {0, 5, -1, -1, 2, 3});
  EXPECT_EQ(all.route_at(0, 1, 0), (std::vector<std::int32_t>{0, -1}));
  EXPECT_EQ(all.route_at(2, 1, 0), (std::vector<std::int32_t>{-1, 1}));
  EXPECT_EQ(all.route_at(1, 1, 2), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(all.weights_at(2, 1, 0), (std::vector<float>{1.0f, 1.5f}));
}

TEST(send, publishes_header_and_every_chunk_to_every_rank_with_the_epoch) {
  three_ranks all;  // chunks of two tokens
  all.send(1, {0, 5, -1, -1, 2, 3});
  std::uint32_t const maps[3][2] = {{1, 0}, {0, 1}, {1, 0}};
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(all.header(d, 1), std::uint64_t{1} << 24 | 3);
    for (int c = 0; c < 2; ++c)
      EXPECT_EQ(all.arrived(d, 1, c), std::uint64_t{1} << 16 | maps[d][c]) << d << " " << c;
    EXPECT_EQ(all.header(d, 0), 0u);
  }
}

TEST(send, counts_rows_for_each_expert_twice_if_named_twice) {
  three_ranks all;
  all.send(0, {4, 4, 5, 4, 1, 77});
  EXPECT_EQ(all.counts(2, 0), (std::vector<std::uint32_t>{3, 1}));
  EXPECT_EQ(all.counts(0, 0), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(all.counts(1, 0), (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(all.tally_of(0, tally::ids_out_of_range), 1u);
}

TEST(send, sends_a_header_for_no_tokens) {
  three_ranks all;
  all.send(2, {});
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(all.header(d, 2), std::uint64_t{1} << 24);
    EXPECT_EQ(all.arrived(d, 2, 0), 0u);
  }
}

// R3: without the credit of every rank nothing is written, nor after a failed wait.
TEST(send, writes_nothing_before_every_rank_has_given_its_credit) {
  for (int missing = 0; missing < 3; ++missing) {
    three_ranks all;
    all.finish_step();
    for (int d = 0; d < 3; ++d)
      if (d != missing) all.done(0, d) = 1;
    all.done(0, missing) = 0;
    all.send(0, {0, 2, 4, -1});
    EXPECT_TRUE(all.ranks.rank(0).waits->failed());
    EXPECT_EQ(all.ranks.rank(0).waits->what_failed().rank, missing);
    for (int d = 0; d < 3; ++d) {
      EXPECT_EQ(all.header(d, 0), std::uint64_t{1} << 24 | 1) << "still of the first step";
      EXPECT_EQ(all.row_at(d, 0, 1), 0.0f);
    }
  }
}

TEST(send, counts_bytes_to_itself_apart) {
  three_ranks all;
  all.send(1, {0, 2, 3, 4});
  std::uint64_t const record = 4 + 2 * 8;
  EXPECT_EQ(all.tally_of(1, tally::sent_self_bytes), 2 * record);
  EXPECT_EQ(all.tally_of(1, tally::sent_bytes), 2 * record);
}

TEST(send, has_room_for_a_row_two_sets_of_scales_and_a_route) {
  exchange_shape s{.topk = 3};
  s.row_bytes = 17;
  s.scale_bytes = 5;
  s.home_bytes = 4;
  EXPECT_GE(send_rows::scratch_bytes(s), 32u + 2 * 5 + 24);
  EXPECT_GE(row_scratch_bytes(s), 32u + 2 * 5 + 24);
  s.home_bytes = 1000;
  s.home_scale_bytes = 12;
  EXPECT_GE(send_rows::scratch_bytes(s), 1012u);
}

}  // namespace
