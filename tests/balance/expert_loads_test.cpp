// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/expert_loads.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ferry {
namespace {

using testing::HasSubstr;

expert_loads loads_2x3(std::vector<double> values) {
  return {2, 3, std::move(values)};
}

void expect_refused(expert_loads const& loads, char const* reason) {
  auto const checked = validate(loads);
  ASSERT_FALSE(checked) << reason;
  EXPECT_EQ(checked.error().code, error_code::invalid_argument);
  EXPECT_THAT(checked.error().message, HasSubstr(reason));
}

TEST(expert_loads, takes_a_layer_of_zeros_but_no_window_of_zeros) {
  EXPECT_TRUE(validate(loads_2x3({0, 0, 0, 1, 2, 0})));
  expect_refused(loads_2x3({0, 0, 0, 0, 0, 0}), "the window is empty");
}

TEST(expert_loads, refuses_what_is_no_load_and_says_where) {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  double const infinity = std::numeric_limits<double>::infinity();
  expect_refused(loads_2x3({0, 0, 0, 1, -2, 0}), "expert 1 in layer 1 is -2");
  expect_refused(loads_2x3({0, 0, nan, 1, 2, 0}), "expert 2 in layer 0 is nan");
  expect_refused(loads_2x3({infinity, 0, 0, 1, 2, 0}), "expert 0 in layer 0 is inf");
  expect_refused(loads_2x3({1e308, 1e308, 0, 0, 0, 0}), "add up to more");
}

TEST(expert_loads, refuses_wrong_shapes) {
  expect_refused(loads_2x3({1, 2, 3, 4, 5}), "5 loads, but 2 layers of 3 experts make 6");
  expect_refused({0, 3, {}}, "0 layers");
  expect_refused({2, -1, {}}, "-1 experts");
}

TEST(expert_loads, average_weighs_windows_alike_in_every_layer) {
  std::vector<expert_loads> const windows = {loads_2x3({1, 1, 2, 0, 0, 0}),
                                             loads_2x3({300, 100, 0, 5, 5, 0})};
  auto const mean = average(windows).value();
  EXPECT_THAT(mean.values,
              testing::Pointwise(testing::DoubleEq(), {0.5, 0.25, 0.25, 0.25, 0.25, 0.0}));
}

TEST(expert_loads, average_leaves_a_single_window_as_it_is) {
  std::vector<expert_loads> const windows = {loads_2x3({1, 1, 2, 0, 3, 7})};
  EXPECT_EQ(average(windows).value().values, windows[0].values);
}

TEST(expert_loads, average_refuses_no_window_and_different_shapes) {
  EXPECT_THAT(average({}).error().message, HasSubstr("no window"));
  std::vector<expert_loads> const windows = {loads_2x3({1, 1, 2, 0, 3, 7}),
                                             {1, 6, {1, 1, 2, 0, 3, 7}}};
  EXPECT_THAT(average(windows).error().message, HasSubstr("2 layers of 3 experts, and 1 of 6"));
}

}  // namespace
}  // namespace ferry
