// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/load_window.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry {
namespace {

using testing::HasSubstr;
using counts = std::vector<std::int64_t>;

TEST(load_window, knows_sum_mean_and_variance_of_its_steps) {
  auto window = load_window::make(1, 2).value();
  for (auto const& step : {counts{1, 4}, counts{3, 4}, counts{8, 4}})
    ASSERT_TRUE(window.add_step(step));
  EXPECT_EQ(window.steps(), 3);
  EXPECT_EQ(window.sum(0, 0), 12);
  EXPECT_EQ(window.mean(0, 0), 4);
  EXPECT_NEAR(window.variance(0, 0), 26.0 / 3, 1e-12);  // (9 + 1 + 16) / 3
  EXPECT_EQ(window.variance(0, 1), 0);
  EXPECT_THAT(window.loads().value().values, testing::ElementsAre(12, 12));
}

TEST(load_window, is_empty_at_first_and_after_clear) {
  auto window = load_window::make(2, 2).value();
  EXPECT_THAT(window.loads().error().message, HasSubstr("0 steps"));
  ASSERT_TRUE(window.add_step(counts{1, 2, 3, 4}));
  EXPECT_TRUE(window.loads());
  window.clear();
  EXPECT_FALSE(window.loads());
  EXPECT_EQ(window.mean(1, 1), 0);
  EXPECT_EQ(window.variance(1, 1), 0);
}

TEST(load_window, with_steps_that_counted_nothing_is_empty_too) {
  auto window = load_window::make(1, 2).value();
  ASSERT_TRUE(window.add_step(counts{0, 0}));
  EXPECT_EQ(window.loads().error().code, error_code::invalid_argument);
}

TEST(load_window, is_unchanged_by_a_step_that_it_refuses) {
  auto window = load_window::make(1, 2).value();
  EXPECT_THAT(window.add_step(counts{1}).error().message, HasSubstr("1 counts"));
  EXPECT_THAT(window.add_step(counts{5, -1}).error().message,
              HasSubstr("expert 1 in layer 0 was counted -1 times"));
  EXPECT_EQ(window.steps(), 0);
  EXPECT_EQ(window.sum(0, 0), 0);
}

TEST(load_window, restores_what_it_was_and_refuses_what_no_steps_could_make) {
  auto const window = load_window::restore(1, 2, 2, {4, 6}, {10, 18}).value();
  EXPECT_EQ(window.variance(0, 0), 1);
  EXPECT_EQ(window.variance(0, 1), 0);
  EXPECT_FALSE(load_window::restore(1, 2, 2, {4, 6}, {10, 17}));  // at least 6 * 6 / 2
  EXPECT_FALSE(load_window::restore(1, 2, 0, {4, 6}, {10, 18}));
  EXPECT_FALSE(load_window::restore(1, 2, -1, {0, 0}, {0, 0}));
  EXPECT_FALSE(load_window::restore(1, 2, 2, {4}, {10, 18}));
  EXPECT_FALSE(load_window::restore(1, 2, 2, {-4, 6}, {10, 18}));
  EXPECT_FALSE(load_window::restore(0, 2, 2, {}, {}));
}

}  // namespace
}  // namespace ferry
