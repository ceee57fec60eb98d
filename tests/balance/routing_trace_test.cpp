// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/routing_trace.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace ferry {
namespace {

using testing::HasSubstr;

TEST(routing_trace, loads_count_choices_and_not_the_masked_ones) {
  routing_trace const trace{2, 2, 2, {0, 1, 2, -1, 1, 1, -1, -1}};
  auto const loads = loads_of(trace, 3).value();
  EXPECT_EQ(loads.num_layers, 2);
  EXPECT_THAT(loads.values, testing::ElementsAre(1, 3, 0, 0, 0, 1));
  EXPECT_THAT(trace.choices(1, 0), testing::ElementsAre(1, 1));
}

TEST(routing_trace, says_which_token_chose_an_expert_that_does_not_exist) {
  routing_trace const trace{2, 2, 2, {0, 1, 2, -1, 1, 1, 3, -1}};
  EXPECT_THAT(validate(trace, 3).error().message, HasSubstr("token 1 chooses expert 3 in layer 1"));
  EXPECT_TRUE(validate(trace, 4));
  routing_trace const below{1, 1, 1, {-2}};
  EXPECT_FALSE(validate(below, 4));
}

TEST(routing_trace, refuses_wrong_shapes_and_no_choices) {
  EXPECT_THAT(validate({2, 2, 2, {0, 1}}, 3).error().message, HasSubstr("2 ids"));
  EXPECT_FALSE(validate({0, 2, 2, {}}, 3));
  EXPECT_FALSE(loads_of({1, 1, 2, {-1, -1}}, 3));
  EXPECT_FALSE(loads_of({1, 1, 2, {0, 1}}, 0));
}

TEST(trace_sampler, keeps_all_while_there_is_room) {
  auto sampler = trace_sampler::make(1, 2, 3).value();
  for (std::int32_t t = 0; t < 3; ++t)
    ASSERT_TRUE(sampler.offer(std::vector<std::int32_t>{t, t + 10}));
  EXPECT_EQ(sampler.sample().num_tokens, 3);
  EXPECT_THAT(sampler.sample().experts, testing::ElementsAre(0, 10, 1, 11, 2, 12));
  EXPECT_TRUE(validate(sampler.sample(), 20));
}

TEST(trace_sampler, is_even_over_a_long_stream_and_the_same_each_time) {
  constexpr std::int32_t offered = 4000;
  std::vector<routing_trace> samples;
  for (int run = 0; run < 2; ++run) {
    auto sampler = trace_sampler::make(1, 1, 400).value();
    for (std::int32_t t = 0; t < offered; ++t)
      ASSERT_TRUE(sampler.offer(std::vector<std::int32_t>{t}));
    EXPECT_EQ(sampler.offered(), offered);
    samples.push_back(sampler.sample());
  }
  EXPECT_EQ(samples[0].experts, samples[1].experts);
  ASSERT_EQ(samples[0].num_tokens, 400);
  std::set<std::int32_t> const distinct(samples[0].experts.begin(), samples[0].experts.end());
  EXPECT_EQ(distinct.size(), 400u);
  // Of each quarter of the stream 100 are expected; 60 and 140 are beyond four deviations.
  for (int quarter = 0; quarter < 4; ++quarter) {
    auto const from = std::count_if(distinct.begin(), distinct.end(),
                                    [&](auto t) { return t / (offered / 4) == quarter; });
    EXPECT_GT(from, 60);
    EXPECT_LT(from, 140);
  }
}

TEST(trace_sampler, refuses_choices_of_another_size) {
  auto sampler = trace_sampler::make(2, 2, 3).value();
  EXPECT_THAT(sampler.offer(std::vector<std::int32_t>{1, 2}).error().message,
              HasSubstr("2 choices"));
  EXPECT_FALSE(trace_sampler::make(1, 1, 0));
}

}  // namespace
}  // namespace ferry
