// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/rms_norm.hpp>

#include <ferry/deepseek/reference/rms_norm.hpp>

#include "deepseek/owned_matrix.hpp"

#include <gtest/gtest.h>

namespace ferry::deepseek {
namespace {

using test::owned_matrix;

TEST(rms_norm, follows_the_reference_at_any_width) {
  for (std::int64_t columns : {1, 15, 16, 33, 256, 1000}) {
    owned_matrix const x("x", 3, columns, 5);
    owned_matrix const w("w", 1, columns);
    owned_matrix y(3, columns);
    rms_norm(x.read(), w.values, 1e-6F, y.view());
    for (std::int64_t row = 0; row < 3; ++row) {
      auto const expected =
          reference::rms_norm({x[row], x[row] + columns}, w.values, double{1e-6F});
      EXPECT_LT(test::distance(y[row], expected.data(), columns), 2e-6) << columns;
    }
  }
}

TEST(rms_norm, works_in_place_between_other_columns) {
  owned_matrix values("x", 4, 50);
  owned_matrix const before = values;
  owned_matrix const w("w", 1, 30);
  owned_matrix expected(4, 30);
  rms_norm({before[0] + 5, 4, 30, 50}, w.values, 1e-5F, expected.view());
  rms_norm({values[0] + 5, 4, 30, 50}, w.values, 1e-5F, {values.view()[0] + 5, 4, 30, 50});
  for (std::int64_t row = 0; row < 4; ++row) {
    EXPECT_TRUE(test::same_bits(values[row] + 5, expected[row], 30));
    EXPECT_TRUE(test::same_bits(values[row], before[row], 5));
    EXPECT_TRUE(test::same_bits(values[row] + 35, before[row] + 35, 15));
  }
}

TEST(rms_norm, keeps_a_row_of_zeros) {
  owned_matrix const x(1, 20);
  owned_matrix const w("w", 1, 20);
  owned_matrix y("y", 1, 20);
  rms_norm(x.read(), w.values, 1e-6F, y.view());
  for (float v : y.values) EXPECT_EQ(v, 0.0F);
}

}  // namespace
}  // namespace ferry::deepseek
