// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/find.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

std::int64_t found_in(std::vector<float> const& values, float x) {
  return stored_by_every_strip(1, std::int64_t{-1}, [&](auto const& s, std::int64_t* out) {
    std::int64_t const at =
        find_first(s, values.data(), static_cast<std::int64_t>(values.size()), x);
    if (s.index() == 0 && s.leader()) *out = at;
  })[0];
}
std::int64_t largest_in(std::vector<float> const& values) {
  return stored_by_every_strip(1, std::int64_t{-1}, [&](auto const& s, std::int64_t* out) {
    std::int64_t const at =
        find_largest(s, values.data(), static_cast<std::int64_t>(values.size()));
    if (s.index() == 0 && s.leader()) *out = at;
  })[0];
}

TEST(find, gives_the_lowest_place_of_a_value) {
  for (std::size_t n : {1, 16, 17, 40}) {
    std::vector<float> values(n, 1);
    EXPECT_EQ(found_in(values, 2), static_cast<std::int64_t>(n));
    values[n - 1] = 2;
    EXPECT_EQ(found_in(values, 2), static_cast<std::int64_t>(n - 1));
    EXPECT_EQ(found_in(values, 1), n == 1 ? 1 : 0);
    values[n / 2] = 2;
    EXPECT_EQ(found_in(values, 2), static_cast<std::int64_t>(n / 2));
  }
  EXPECT_EQ(found_in({}, 1), 0);
}

TEST(find, gives_the_lowest_place_of_the_largest) {
  EXPECT_EQ(largest_in(std::vector<float>(33, -5)), 0);
  EXPECT_EQ(largest_in({NAN, 1, 3, NAN, 3}), 2);
  EXPECT_EQ(largest_in({-HUGE_VALF, NAN}), 0);
  EXPECT_EQ(largest_in({NAN, NAN}), 2) << "there is none";
  std::vector<float> values = random_floats(100);
  values[77] = 9;
  values[99] = 9;
  values[3] = NAN;
  EXPECT_EQ(largest_in(values), 77);
}

}  // namespace
}  // namespace ferry::deepseek
