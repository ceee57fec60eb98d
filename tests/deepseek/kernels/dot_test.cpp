// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/dot.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

TEST(dot, adds_in_sixteen_lanes_and_a_tree_on_every_strip) {
  for (std::int64_t n : {0, 1, 15, 16, 17, 80, 576, 1001}) {
    auto const a = random_floats(static_cast<std::size_t>(n), 3);
    auto const b = random_floats(static_cast<std::size_t>(4 * n), 3, 2);
    auto const found = stored_by_every_strip(5, 0.0F, [&](auto const& s, float* out) {
      float const one = dot(s, a.data(), b.data(), n);
      auto const four = dot_four(s, a.data(), b.data(), n, n);
      if (s.index() != 0) return;
      if (s.leader()) out[4] = one;
      s.store_four(four, out);
    });
    for (std::int64_t row = 0; row < 4; ++row) {
      float lane[16] = {};
      for (std::int64_t i = 0; i < n; ++i) {
        // Two statements: no compiler may make one rounding of them.
        float const product =
            a[static_cast<std::size_t>(i)] * b[static_cast<std::size_t>(row * n + i)];
        lane[i % 16] += product;
      }
      for (int half = 8; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
      }
      EXPECT_EQ(found[static_cast<std::size_t>(row)], lane[0]) << n;
    }
    EXPECT_EQ(found[4], found[0]);
  }
}

}  // namespace
}  // namespace ferry::deepseek
