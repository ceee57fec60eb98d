// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/receive.hpp>

#include "kernels/three_ranks.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

void send_all(three_ranks& all) {
  all.send(0, {2, 4, 3, -1});         // to rank 1: expert 2 and 3
  all.send(1, {3, 2, -1, -1, 0, 3});  // to rank 1: token 0 by both, token 2 by its second choice
  all.send(2, {});
}

std::vector<float> rows_at(three_ranks& all, int r) {
  step_memory const& m = all.ranks.rank(r).memory();
  std::vector<float> rows;
  for (int p = 0; p < *m.end; ++p)
    rows.push_back(
        *reinterpret_cast<float const*>(m.rows + static_cast<std::size_t>(p) * m.row_stride));
  return rows;
}

TEST(receive, lays_rows_out_by_expert_then_source_then_token) {
  three_ranks all;
  send_all(all);
  all.receive(1);
  step_memory const& m = all.ranks.rank(1).memory();
  EXPECT_EQ(rows_at(all, 1), (std::vector<float>{10, 10, 11, 10, 12}));
  EXPECT_EQ(m.starts[0], 0);
  EXPECT_EQ(m.starts[1], 2);
  EXPECT_EQ(m.counts[0], 2);
  EXPECT_EQ(m.counts[1], 3);
  EXPECT_EQ(all.tally_of(1, tally::rows_received), 5u);
}

TEST(receive, keeps_positions_weights_and_maps_in_private_memory) {
  three_ranks all;
  send_all(all);
  all.receive(1);
  step_frame const& f = all.ranks.rank(1).frame();
  step_memory const& m = f.memory;
  auto const plan = [&](int source, int token, int k) {
    return m.plan[f.planned(source, token) + static_cast<std::size_t>(k)];
  };
  EXPECT_EQ(plan(0, 0, 0), 0);
  EXPECT_EQ(plan(0, 0, 1), not_here);
  EXPECT_EQ(plan(0, 1, 0), 2);
  EXPECT_EQ(plan(1, 0, 0), 3);
  EXPECT_EQ(plan(1, 0, 1), 1);
  EXPECT_EQ(plan(1, 2, 1), 4);
  EXPECT_EQ(m.plan_weights[f.planned(1, 2) + 1], 3.5f);
  EXPECT_EQ(m.maps[f.map_index(0, 0, 0)], 3);
  EXPECT_EQ(m.maps[f.map_index(1, 0, 0)], 1);
  EXPECT_EQ(m.maps[f.map_index(1, 0, 1)], 1);
  EXPECT_EQ(m.seen_tokens[0], 2);
  EXPECT_EQ(m.seen_tokens[1], 3);
  EXPECT_EQ(m.seen_tokens[2], 0);
}

TEST(receive, writes_an_index_and_no_rows_in_place) {
  three_ranks all({.layout = layout::in_place});
  send_all(all);
  all.receive(1);
  step_memory const& m = all.ranks.rank(1).memory();
  ASSERT_EQ(*m.end, 5);
  EXPECT_EQ((std::vector<int>(m.index, m.index + 5)), (std::vector<int>{0, 4, 1, 4, 6}));
}

TEST(receive, drops_what_has_no_room_and_says_how_much_came) {
  three_ranks all({.layout = layout::padded, .capacity = 2});
  send_all(all);
  all.receive(1);
  step_frame const& f = all.ranks.rank(1).frame();
  step_memory const& m = f.memory;
  EXPECT_EQ(m.starts[1], 2);
  EXPECT_EQ(m.counts[1], 2);
  EXPECT_EQ(m.wanted[1], 3);
  EXPECT_EQ(*m.end, 4);
  EXPECT_EQ(m.plan[f.planned(1, 2) + 1], no_room);
  EXPECT_EQ(rows_at(all, 1), (std::vector<float>{10, 10, 11, 10}));
}

// R5: neither a count nor a row is used before its word is there.
TEST(receive, waits_for_every_header_and_every_chunk) {
  three_ranks all;
  all.send(0, {2, -1});
  all.send(1, {2, -1});
  all.receive(1);
  ASSERT_TRUE(all.has_failed(1));
  EXPECT_EQ(all.failed(1).rank, 2);
  EXPECT_EQ(all.failed(1).wait.kind, flag::header);

  three_ranks again;
  send_all(again);
  std::uint64_t& word =
      again.ranks.rank(1).word(again.frame().chunk_flag(flag_field::arrived, 1, 1));
  word = 0;
  again.receive(1);
  ASSERT_TRUE(again.has_failed(1));
  EXPECT_EQ(again.failed(1).wait.kind, flag::arrived);
  EXPECT_EQ(again.failed(1).rank, 1);
  EXPECT_EQ(again.failed(1).wait.chunk, 1);
}

}  // namespace
