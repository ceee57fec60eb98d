// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/shape.hpp>

#include <gtest/gtest.h>

namespace {

using namespace ferry;

// Rank r owns [floor(rE/R), floor((r+1)E/R)), which may be nothing.
TEST(shape, gives_each_expert_to_the_one_rank_whose_range_holds_it) {
  for (int ranks = 1; ranks <= 70; ++ranks)
    for (int experts = 1; experts <= 150; ++experts) {
      ASSERT_EQ(first_expert_of(0, ranks, experts), 0);
      ASSERT_EQ(first_expert_of(ranks, ranks, experts), experts);
      for (int e = 0; e < experts; ++e) {
        int const owner = owner_of(e, ranks, experts);
        ASSERT_LE(first_expert_of(owner, ranks, experts), e);
        ASSERT_GT(first_expert_of(owner + 1, ranks, experts), e);
      }
      exchange_shape const s{.ranks = ranks, .experts = experts};
      for (int r = 0; r < ranks; ++r) ASSERT_LE(s.local_experts(r), s.most_local_experts());
    }
}

TEST(shape, does_not_overflow_at_its_largest) {
  int const experts = 1 << 20, ranks = 65536;
  EXPECT_EQ(first_expert_of(ranks, ranks, experts), experts);
  EXPECT_EQ(owner_of(experts - 1, ranks, experts), ranks - 1);
}

TEST(shape, counts_rounds_chunks_and_epochs) {
  exchange_shape s{.topk = 6, .max_tokens = 100, .round_tokens = 100, .chunk_tokens = 16};
  EXPECT_EQ(s.max_rounds(), 1);
  EXPECT_EQ(s.round_chunks(), 7);
  EXPECT_EQ(s.step_chunks(), 7);
  EXPECT_EQ(s.step_epochs(), 1u);
  s.round_tokens = 33;
  EXPECT_EQ(s.max_rounds(), 4);
  EXPECT_EQ(s.round_chunks(), 3);
  EXPECT_EQ(s.step_chunks(), 12);
  EXPECT_EQ(s.step_epochs(), 9u);
}

}  // namespace
