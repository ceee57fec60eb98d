// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/softmax.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

std::vector<float> weights_of(std::vector<float> const& scores) {
  return stored_by_every_strip(scores, 0, [&](auto const& s, float* out, float*) {
    if (s.index() == 0) softmax(s, out, static_cast<std::int64_t>(scores.size()));
  });
}

TEST(softmax, makes_weights_that_sum_to_one_on_every_strip) {
  for (std::size_t n : {1, 15, 16, 17, 1000}) {
    auto const scores = random_floats(n, 20);
    auto const weights = weights_of(scores);
    double const largest = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (float x : scores) total += std::exp(x - largest);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(weights[i], std::exp(scores[i] - largest) / total, 1e-6);
      sum += weights[i];
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST(softmax, gives_nothing_to_minus_infinity_and_all_to_nan) {
  EXPECT_EQ(weights_of({3, -HUGE_VALF}), (std::vector<float>{1, 0}));
  for (float w : weights_of({1, NAN, 2})) EXPECT_TRUE(std::isnan(w));
}

}  // namespace
}  // namespace ferry::deepseek
