// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/gate_rows.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

TEST(gate_rows, gates_rows_of_any_width_on_every_strip) {
  for (std::int64_t width : {1, 15, 16, 17, 48, 520}) {
    auto const from = random_floats(static_cast<std::size_t>(5 * 2 * width), 4);
    auto const found = stored_by_every_strip(
        static_cast<std::size_t>(5 * width), 7.0F, [&](auto const& s, float* out) {
          gate_rows{dense(from.data(), 5, 2 * width), dense(out, 5, width)}(s);
        });
    for (std::int64_t row = 0; row < 5; ++row) {
      for (std::int64_t i = 0; i < width; ++i) {
        double const g = from[static_cast<std::size_t>(row * 2 * width + i)];
        double const u = from[static_cast<std::size_t>((row * 2 + 1) * width + i)];
        ASSERT_NEAR(found[static_cast<std::size_t>(row * width + i)], g / (1 + std::exp(-g)) * u,
                    4e-6);
      }
    }
  }
}

TEST(gate_rows, treats_odd_numbers_alike_on_every_strip) {
  auto const from = odd_floats(2 * 3 * 70);
  auto const found = stored_by_every_strip(3 * 70, 7.0F, [&](auto const& s, float* out) {
    gate_rows{dense(from.data(), 3, 140), dense(out, 3, 70)}(s);
  });
  EXPECT_TRUE(std::isnan(found[0]));
}

}  // namespace
}  // namespace ferry::deepseek
