// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/normalise_rows.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

TEST(normalise_rows, normalises_rows_of_any_width_on_every_strip) {
  for (std::int64_t n : {1, 15, 16, 17, 300}) {
    auto const from = random_floats(static_cast<std::size_t>(7 * (n + 1)), 5);
    auto const weight = random_floats(static_cast<std::size_t>(n), 2, 2);
    auto const found = stored_by_every_strip(
        static_cast<std::size_t>(7 * n), 7.0F, [&](auto const& s, float* out) {
          normalise_rows{{from.data(), 7, n, n + 1}, weight.data(), 1e-6F, dense(out, 7, n)}(s);
        });
    for (std::int64_t row = 0; row < 7; ++row) {
      double sum = 0;
      float const* const x = from.data() + row * (n + 1);
      for (std::int64_t i = 0; i < n; ++i) sum += double{x[i]} * double{x[i]};
      for (std::int64_t i = 0; i < n; ++i) {
        double const expected = x[i] / std::sqrt(sum / static_cast<double>(n) + 1e-6) *
                                weight[static_cast<std::size_t>(i)];
        ASSERT_NEAR(found[static_cast<std::size_t>(row * n + i)], expected, 3e-6);
      }
    }
  }
}

TEST(normalise_rows, works_in_place_and_treats_odd_numbers_alike) {
  auto const before = odd_floats(4 * 33);
  std::vector<float> const weight(33, 1);
  auto const found = stored_by_every_strip(before, 0, [&](auto const& s, float* out, float*) {
    normalise_rows{dense<float const>(out, 4, 33), weight.data(), 1e-6F, dense(out, 4, 33)}(s);
  });
  EXPECT_TRUE(std::isnan(found[0]));
}

}  // namespace
}  // namespace ferry::deepseek
