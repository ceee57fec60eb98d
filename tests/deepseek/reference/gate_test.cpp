// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/reference/gate.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::deepseek::reference {
namespace {

using testing::ElementsAre;

TEST(reference_gate, orders_by_falling_value_and_rising_index) {
  EXPECT_THAT(largest({1, 3, 3, 2}, 3), ElementsAre(1, 2, 3));
}

TEST(reference_gate, weighs_sigmoids_by_their_share) {
  gate_rule rule{2, 2};
  rule.scale = 3;
  auto const c = choose(rule, {0, std::log(3)}, {});  // scores 1/2 and 3/4
  EXPECT_THAT(c.ids, ElementsAre(1, 0));
  EXPECT_NEAR(c.weights[0], 1.8, 1e-12);
  EXPECT_NEAR(c.weights[1], 1.2, 1e-12);
}

TEST(reference_gate, takes_softmax_over_all_experts) {
  gate_rule rule{3, 1};
  rule.scoring = scoring::softmax;
  rule.normalise = false;
  EXPECT_NEAR(choose(rule, {0, std::log(2), 0}, {}).weights[0], 0.5, 1e-12);
}

TEST(reference_gate, keeps_the_groups_worth_most) {
  gate_rule rule{4, 2, 2, 1};
  EXPECT_THAT(choose(rule, {3, -9, 1, 1}, {}).ids, ElementsAre(2, 3));
  rule.group_is_two_best = false;
  EXPECT_THAT(choose(rule, {3, -9, 1, 1}, {}).ids, ElementsAre(0, 1));
  EXPECT_THAT(choose(rule, {3, -9, 1, 1}, {0, 0, 0, 1}).ids, ElementsAre(3, 2));
}

}  // namespace
}  // namespace ferry::deepseek::reference
