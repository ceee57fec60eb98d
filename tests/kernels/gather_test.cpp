// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/gather.hpp>

#include "kernels/three_ranks.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

void dispatch(three_ranks& all) {
  all.send(0, {0, 4, -1, -1, 2, 2});
  all.send(1, {});
  all.send(2, {});
  for (int r = 0; r < 3; ++r) all.receive(r);
}
void give_back(three_ranks& all) {
  all.give_back(0, {100});
  all.give_back(1, {20, 30});
  all.give_back(2, {1000});
}

TEST(gather, sums_what_came_home_for_each_token) {
  for (auto how : {reduction::per_rank, reduction::per_choice}) {
    three_ranks all({.reduction = how});
    dispatch(all);
    give_back(all);
    EXPECT_EQ(all.gather(0, 4), (std::vector<float>{100 + 1.5f * 1000, 0, 3 * 20 + 3.5f * 30, -1}));
    EXPECT_EQ(all.gather(1, 1), (std::vector<float>{-1})) << "no tokens, no rows";
  }
}

TEST(gather, adds_a_row_last_also_when_it_is_the_output) {
  three_ranks all;
  dispatch(all);
  give_back(all);
  std::vector<float> rows = {1, 2, 3, 4};
  auto* const bytes = reinterpret_cast<std::byte*>(rows.data());
  all.ranks.run(0, gather_rows{.frame = all.ranks.rank(0).frame(),
                               .output = bytes,
                               .output_stride = 4,
                               .added = bytes,
                               .added_stride = 4,
                               .type = dtype::f32});
  EXPECT_EQ(rows, (std::vector<float>{1601, 2, 168, 4}));
}

TEST(gather, waits_for_every_rank_that_serves_a_token) {
  for (int missing : {0, 1, 2}) {
    three_ranks all;
    dispatch(all);
    give_back(all);
    all.back(0, missing, missing == 1 ? 1 : 0) = 0;
    all.gather(0, 3);
    ASSERT_TRUE(all.has_failed(0));
    EXPECT_EQ(all.failed(0).rank, missing);
    EXPECT_EQ(all.failed(0).wait.kind, flag::back);
  }
}

TEST(gather, needs_no_word_of_a_rank_that_serves_nothing) {
  three_ranks all;
  all.send(0, {0, 1});
  all.send(1, {});
  all.send(2, {});
  for (int r = 0; r < 3; ++r) all.receive(r);
  all.give_back(0, {7, 8});
  EXPECT_EQ(all.gather(0, 1), (std::vector<float>{7 + 1.5f * 8}));
}

TEST(gather, writes_nothing_for_a_released_step_and_counts_it) {
  three_ranks all;
  dispatch(all);
  all.ranks.release();
  EXPECT_FALSE(all.ranks.failed());
  // The next step's epochs go on from there.
  dispatch(all);
  give_back(all);
  EXPECT_EQ(all.gather(0, 3), (std::vector<float>{1600, 0, 165}));
  EXPECT_EQ(all.back(0, 0, 0), 2u);
}

}  // namespace
