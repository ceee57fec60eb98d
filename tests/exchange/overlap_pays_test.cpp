// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/overlap_pays.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace ferry;
using testing::HasSubstr;

// DeepSeek-R1 on nodes of 8x MI300X.
overlap_verdict on_nodes(int nodes, int tokens) {
  return overlap_pays({.tokens = tokens}, step_hardware::mi300x(nodes));
}

TEST(overlap_pays, says_no_on_one_node) {
  for (int tokens : {128, 192, 256, 384, 512}) {
    overlap_verdict const v = on_nodes(1, tokens);
    EXPECT_FALSE(v.pays) << v.why;
    EXPECT_GE(v.cost_s, 15e-3) << tokens;
    EXPECT_LE(v.cost_s, 19e-3) << tokens;
    EXPECT_GE(v.hidden_s, 5e-3) << tokens;
    EXPECT_LE(v.hidden_s, 12e-3) << tokens;
  }
}

TEST(overlap_pays, breaks_even_near_two_nodes_and_clearly_gains_at_four) {
  overlap_verdict const two = on_nodes(2, 128), four = on_nodes(4, 128);
  EXPECT_NEAR(two.hidden_s / two.cost_s, 1, 0.35) << two.why;
  EXPECT_TRUE(four.pays);
  EXPECT_GT(four.hidden_s, 2 * four.cost_s) << four.why;
  EXPECT_TRUE(on_nodes(4, 512).pays);
}

TEST(overlap_pays, gives_its_reason_in_one_sentence) {
  for (int nodes : {1, 4}) {
    std::string const why = on_nodes(nodes, 128).why;
    EXPECT_THAT(why, HasSubstr("reads the experts' weights twice"));
    EXPECT_THAT(why, HasSubstr(nodes == 1 ? "1 node:" : "4 nodes:"));
    EXPECT_EQ(why.back(), '.');
    EXPECT_THAT(why, HasSubstr(nodes == 1 ? "does not pay" : "it pays"));
  }
}

TEST(overlap_pays, counts_other_weights_and_experts_that_nobody_chooses) {
  step_hardware const h = step_hardware::mi300x(1);
  EXPECT_GT(overlap_pays({.tokens = 128, .other_weight_bytes = 14e9}, h).cost_s,
            on_nodes(1, 128).cost_s + 2e-3);
  // Two tokens of each rank touch few experts, so that their weights are mostly read once.
  EXPECT_LT(on_nodes(1, 2).cost_s, 8e-3);
}

TEST(overlap_pays, costs_nothing_more_where_arithmetic_is_the_limit) {
  EXPECT_LT(on_nodes(1, 65536).cost_s, 1e-3);
}

TEST(overlap_pays, says_no_where_nothing_can_be_hidden) {
  EXPECT_THAT(overlap_pays({.tokens = 64}, step_hardware::cpu(8, 2)).why,
              HasSubstr("nothing to hide behind"));
  EXPECT_TRUE(step_hardware::cpu(2, 8).communicates_beside);
  EXPECT_THAT(overlap_pays({.tokens = 64}, step_hardware::cpu(1, 8)).why, HasSubstr("nobody"));
  EXPECT_THAT(on_nodes(4, 1).why, HasSubstr("cannot be split"));
  EXPECT_THAT(on_nodes(4, 0).why, HasSubstr("cannot be split"));
}

TEST(overlap_pays, says_what_it_cannot_tell) {
  EXPECT_THAT(overlap_pays({.moe_layers = 0}, step_hardware::mi300x(1)).why, HasSubstr("below 1"));
  EXPECT_THAT(overlap_pays({}, {}).why, HasSubstr("rate of memory"));
  step_hardware h = step_hardware::mi300x(2);
  h.network_bytes_per_s = 0;
  overlap_verdict const v = overlap_pays({}, h);
  EXPECT_FALSE(v.pays);
  EXPECT_THAT(v.why, HasSubstr("network"));
}

}  // namespace
