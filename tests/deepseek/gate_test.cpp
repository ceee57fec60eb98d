// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/gate.hpp>

#include <ferry/deepseek/reference/gate.hpp>
#include <ferry/deepseek/reference/product.hpp>

#include "deepseek/golden_gate.hpp"
#include "deepseek/owned_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace ferry::deepseek {
namespace {

using test::owned_matrix;
using ::testing::ElementsAre;

struct choice {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
};

choice choose_one(gate_rule const& rule, std::vector<float> const& logits,
                  std::vector<float> const& bias = {}) {
  choice c;
  c.ids.resize(static_cast<std::size_t>(rule.topk));
  c.weights.resize(c.ids.size());
  choose(rule, dense<float const>(logits.data(), 1, rule.num_experts),
         bias.empty() ? nullptr : bias.data(), dense(c.ids.data(), 1, rule.topk),
         dense(c.weights.data(), 1, rule.topk));
  return c;
}

class gate_golden : public ::testing::TestWithParam<char const*> {};
INSTANTIATE_TEST_SUITE_P(files, gate_golden,
                         ::testing::Values("v3_sigmoid_public", "v2_softmax_public"));

TEST_P(gate_golden, chooses_and_weighs_as_the_golden) {
  test::golden_gate const golden(GetParam());
  gate_rule const& rule = golden.rule;
  auto const n = golden.tokens;
  gate const g =
      gate::make(rule, dense<float const>(golden.router.data(), rule.num_experts, golden.hidden),
                 golden.bias)
          .value();
  owned_matrix logits(n, rule.num_experts);
  owned_matrix weights(n, rule.topk);
  std::vector<std::int32_t> found(static_cast<std::size_t>(n * rule.topk));
  ASSERT_TRUE(g.apply(dense<float const>(golden.x.data(), n, golden.hidden), logits.view(),
                      dense(found.data(), n, rule.topk), weights.view()));
  golden.expect_choices(n, found.data(), weights.values.data());
}

TEST(gate, follows_the_reference_under_every_rule) {
  int tried = 0;
  for (auto score : {scoring::sigmoid, scoring::softmax}) {
    for (auto [groups, kept] : {std::pair{1, 1}, {4, 2}, {4, 4}, {12, 5}, {24, 9}}) {
      for (int topk : {1, 2, 5}) {
        for (bool two : {false, true}) {
          for (bool normalise : {false, true}) {
            gate_rule const rule{24, topk, groups, kept, score, two, normalise, 1.5F};
            if (!validate(rule)) continue;
            ++tried;
            owned_matrix const logits("logits" + std::to_string(tried), 1, 24, 4);
            owned_matrix const bias("bias" + std::to_string(tried), 1, 24, 0.5F);
            auto const found = choose_one(rule, logits.values, bias.values);
            auto const expected = reference::choose(rule, reference::to_table(logits.view())[0],
                                                    reference::to_table(bias.view())[0]);
            for (std::size_t k = 0; k < found.ids.size(); ++k) {
              EXPECT_EQ(found.ids[k], expected.ids[k]) << tried;
              EXPECT_NEAR(found.weights[k], expected.weights[k], 1e-6) << tried;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 100);
}

TEST(gate, gives_ties_to_the_lowest_id) {
  gate_rule rule{8, 3};
  std::vector<float> const logits{0, 1, 0, 1, 1, 0, 1, 1};
  EXPECT_THAT(choose_one(rule, logits).ids, ElementsAre(1, 3, 4));
  rule.topk = 6;
  EXPECT_THAT(choose_one(rule, logits).ids, ElementsAre(1, 3, 4, 6, 7, 0));
  rule = {8, 2, 4, 2};  // all groups equal: the first two are kept
  EXPECT_THAT(choose_one(rule, std::vector<float>(8, 0.5F)).ids, ElementsAre(0, 1));
}

TEST(gate, chooses_by_biased_scores_and_weighs_by_plain_ones) {
  gate_rule rule{4, 2};
  rule.scale = 2;
  auto const c = choose_one(rule, {2, 1, 0, -1}, {0, 0, 0, 5});
  EXPECT_THAT(c.ids, ElementsAre(3, 0));
  float const low = 1 / (1 + std::exp(1.0F));
  float const high = 1 / (1 + std::exp(-2.0F));
  EXPECT_FLOAT_EQ(c.weights[0], 2 * low / (low + high));
  EXPECT_FLOAT_EQ(c.weights[1], 2 * high / (low + high));
}

TEST(gate, never_leaves_the_kept_groups_even_when_all_their_scores_are_lower) {
  // Group 0 has the best single score, group 1 the best two; only one is kept.
  gate_rule rule{4, 2, 2, 1};
  std::vector<float> const logits{3, -9, 1, 1};
  EXPECT_THAT(choose_one(rule, logits).ids, ElementsAre(2, 3));
  rule.group_is_two_best = false;
  EXPECT_THAT(choose_one(rule, logits).ids, ElementsAre(0, 1));
  // A bias below zero must not make masked experts look better than kept ones.
  rule.group_is_two_best = true;
  EXPECT_THAT(choose_one(rule, logits, {-9, -9, -9, -9}).ids, ElementsAre(2, 3));
}

TEST(gate, gives_valid_ids_for_logits_that_are_no_numbers) {
  gate_rule const rule{4, 3};
  EXPECT_THAT(choose_one(rule, {NAN, 1, NAN, 2}).ids, ElementsAre(3, 1, 0));
  auto const lost = choose_one(rule, {NAN, NAN, NAN, NAN});
  EXPECT_THAT(lost.ids, ElementsAre(0, 1, 2));
  for (float w : lost.weights) EXPECT_TRUE(std::isnan(w));
  auto const far = choose_one(rule, {-HUGE_VALF, -HUGE_VALF, HUGE_VALF, -200});
  EXPECT_EQ(far.ids[0], 2);
  EXPECT_FLOAT_EQ(far.weights[0], 1);
}

TEST(gate, takes_each_generation_s_rule_from_the_config) {
  model_config config;
  config.model_type = "deepseek_v2";
  config.n_routed_experts = 64;
  config.num_experts_per_tok = 6;
  config.n_group = 8;
  config.topk_group = 3;
  config.scoring_func = scoring::softmax;
  config.topk_method = topk_method::greedy;
  config.norm_topk_prob = false;
  config.routed_scaling_factor = 16;
  EXPECT_EQ(gate_rule::of(config).num_groups, 1);
  EXPECT_EQ(gate_rule::of(config).scale, 16);
  config.topk_method = topk_method::group_limited_greedy;
  EXPECT_EQ(gate_rule::of(config).kept_groups, 3);
  EXPECT_FALSE(gate_rule::of(config).group_is_two_best);
  config.norm_topk_prob = true;  // V2 does not scale what it has normalised
  EXPECT_EQ(gate_rule::of(config).scale, 1);
  config.num_experts_per_tok = 1;  // nor does it normalise a single choice
  EXPECT_FALSE(gate_rule::of(config).normalise);
  EXPECT_EQ(gate_rule::of(config).scale, 16);
  config.model_type = "deepseek_v3";
  config.topk_method = topk_method::noaux_tc;
  EXPECT_TRUE(gate_rule::of(config).normalise);
  EXPECT_TRUE(gate_rule::of(config).group_is_two_best);
  EXPECT_EQ(gate_rule::of(config).scale, 16);
}

TEST(gate, refuses_rules_that_cannot_be_followed) {
  EXPECT_FALSE(validate({0, 1}));
  EXPECT_FALSE(validate({4, 5}));
  EXPECT_FALSE(validate({4, 0}));
  EXPECT_FALSE(validate({6, 2, 4, 1}));
  EXPECT_FALSE(validate({8, 2, 4, 5}));
  EXPECT_FALSE(validate({8, 3, 4, 1}));
  EXPECT_TRUE(validate({8, 2, 4, 1}));
  owned_matrix const w("w", 8, 5);
  EXPECT_FALSE(gate::make({9, 2}, w.view(), {}));
  EXPECT_FALSE(gate::make({8, 2}, w.view(), std::vector<float>(7)));
}

}  // namespace
}  // namespace ferry::deepseek
