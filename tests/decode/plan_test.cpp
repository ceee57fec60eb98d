// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <plan.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::decode {
namespace {

using testing::ElementsAre;
using prompts = std::vector<std::vector<std::int32_t>>;

TEST(plan, gives_prompts_to_ranks_in_turn) {
  EXPECT_THAT(prompts_of(0, 3, 5), ElementsAre(0, 3));
  EXPECT_THAT(prompts_of(1, 3, 5), ElementsAre(1, 4));
  EXPECT_THAT(prompts_of(2, 3, 5), ElementsAre(2));
  EXPECT_THAT(prompts_of(2, 3, 1), ElementsAre());
}

TEST(plan, covers_the_longest_prompt_and_the_busiest_rank) {
  prompts all = {std::vector<std::int32_t>(100), std::vector<std::int32_t>(3),
                 std::vector<std::int32_t>(200)};
  auto p = make_plan(all, 10, 2);
  EXPECT_EQ(p.max_sequences, 2);
  EXPECT_EQ(p.max_positions, 209);  // the last token is not fed
  EXPECT_EQ(p.max_tokens, 128);
  EXPECT_EQ(p.prefill_steps, 3);  // 300 tokens on rank 0
}

TEST(plan, asks_for_no_more_than_there_is) {
  auto p = make_plan(prompts{{1, 2, 3}}, 4, 8);
  EXPECT_EQ(p.max_sequences, 1);
  EXPECT_EQ(p.max_positions, 6);
  EXPECT_EQ(p.max_tokens, 3);
  EXPECT_EQ(p.prefill_steps, 1);
}

TEST(plan, leaves_room_for_a_decode_step_of_every_sequence) {
  auto p = make_plan(prompts(300, {1}), 4, 1);
  EXPECT_EQ(p.max_tokens, 300);
  EXPECT_EQ(p.prefill_steps, 1);
}

}  // namespace
}  // namespace ferry::decode
