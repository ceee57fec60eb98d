// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <sampler.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace ferry::decode {
namespace {

TEST(sampler, takes_the_best_token_and_the_lowest_id_among_equals) {
  sampler greedy(0, 1, 1);
  EXPECT_EQ(greedy.choose(std::vector<float>{-3, 2, 1}).value(), 1);
  EXPECT_EQ(greedy.choose(std::vector<float>{-3, 2, 1, 2, 2}).value(), 1);
  EXPECT_EQ(greedy.choose(std::vector<float>{7}).value(), 0);
}

TEST(sampler, draws_in_proportion) {
  std::vector<float> logits = {std::log(1.0f), std::log(2.0f), std::log(5.0f)};
  sampler s(1, 42, 0);
  std::vector<int> counts(3);
  for (int i = 0; i < 8000; ++i) ++counts[static_cast<std::size_t>(s.choose(logits).value())];
  // Four standard deviations of a binomial are below 180.
  EXPECT_NEAR(counts[0], 1000, 180);
  EXPECT_NEAR(counts[1], 2000, 180);
  EXPECT_NEAR(counts[2], 5000, 180);
}

TEST(sampler, sharpens_at_low_temperature_and_survives_large_logits) {
  std::vector<float> logits = {88888, 88889, 88887};
  sampler cold(0.01, 1, 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(cold.choose(logits).value(), 1);
}

TEST(sampler, refuses_logits_that_say_nothing) {
  float nan = std::nanf(""), infinite = INFINITY;
  for (double temperature : {0.0, 1.0}) {
    sampler s(temperature, 1, 0);
    auto chosen = s.choose(std::vector<float>{1, 2, nan, 3});
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().code, error_code::malformed_input);
    EXPECT_EQ(chosen.error().message, "the logit of token 2 is NaN");
    EXPECT_FALSE(s.choose(std::vector<float>{nan, nan}));
    EXPECT_FALSE(s.choose(std::vector<float>{1, infinite}));
    EXPECT_FALSE(s.choose(std::vector<float>{-infinite, -infinite}));
    EXPECT_EQ(s.choose(std::vector<float>{-infinite, 5}).value(), 1);
  }
}

std::vector<std::int32_t> drawn(std::uint64_t seed, std::uint64_t prompt) {
  sampler s(1, seed, prompt);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 32; ++i) ids.push_back(s.choose(std::vector<float>(100, 0.0f)).value());
  return ids;
}

TEST(sampler, repeats_itself_for_a_seed_and_a_prompt_alone) {
  EXPECT_EQ(drawn(1, 2), drawn(1, 2));
  EXPECT_NE(drawn(1, 2), drawn(1, 3));
  EXPECT_NE(drawn(1, 2), drawn(2, 2));
  EXPECT_NE(drawn(1, 2), drawn(2, 1));
}

}  // namespace
}  // namespace ferry::decode
