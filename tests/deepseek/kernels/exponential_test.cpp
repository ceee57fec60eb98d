// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/exponential.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

TEST(exponential, is_within_one_unit_of_the_last_place) {
  for (float x = -87; x < 88.7F; x += 0.0137F) {
    double const expected = std::exp(double{x});
    EXPECT_NEAR(exponential(x), expected, 1.2e-7 * expected) << x;
  }
}

TEST(exponential, keeps_what_is_no_number_and_what_is_beyond_f32) {
  EXPECT_TRUE(std::isnan(exponential(NAN)));
  EXPECT_EQ(exponential(HUGE_VALF), HUGE_VALF);
  EXPECT_EQ(exponential(89.0F), HUGE_VALF);
  EXPECT_EQ(exponential(-HUGE_VALF), 0);
  EXPECT_EQ(exponential(0.0F), 1);
  EXPECT_EQ(exponential(-0.0F), 1);
}

TEST(exponential, is_the_same_on_every_strip) {
  auto x = random_floats(500, 120);
  auto const odd = odd_floats(100);
  x.insert(x.end(), odd.begin(), odd.end());
  auto const found = stored_by_every_strip(x.size(), 0.0F, [&](auto const& s, float* out) {
    s.for_each(static_cast<std::int64_t>(x.size()),
               [&](std::int64_t i) { out[i] = exponential(x[static_cast<std::size_t>(i)]); });
  });
  EXPECT_TRUE(test::same(found[3], exponential(x[3])));
}

}  // namespace
}  // namespace ferry::deepseek
