// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/mlp.hpp>

#include <ferry/deepseek/reference/mlp.hpp>

#include "deepseek/owned_matrix.hpp"

#include <gtest/gtest.h>

namespace ferry::deepseek {
namespace {

using test::owned_matrix;

TEST(mlp, follows_the_reference) {
  owned_matrix const both("gate and up", 2 * 70, 50, 0.3F);
  owned_matrix const down("down", 50, 70, 0.3F);
  mlp const m = mlp::make(both.view(), down.view()).value();
  std::vector<float> scratch(m.scratch_size());
  owned_matrix const x("x", 150, 50, 4);
  owned_matrix y(150, 50);
  ASSERT_TRUE(m.apply(x.read(), y.view(), scratch));
  for (std::int64_t row = 0; row < x.rows; ++row) {
    auto const expected =
        reference::mlp({both.slice(0, 70), both.slice(70, 70), down.view()}, {x[row], x[row] + 50});
    ASSERT_LT(test::distance(y[row], expected.data(), 50), 1e-4) << row;
  }
  owned_matrix in_place = x;
  ASSERT_TRUE(m.apply(in_place.read(), in_place.view(), scratch));
  EXPECT_TRUE(test::same_bits(in_place[0], y[0], 150 * 50));
}

TEST(mlp, gives_a_row_the_same_bits_in_any_batch) {
  owned_matrix const both("gate and up", 2 * 48, 64);
  owned_matrix const down("down", 64, 48);
  for (dtype type : {dtype::f32, dtype::bf16}) {
    for (row_calls calls : {row_calls::probed, row_calls::sixteen}) {
      mlp const m = mlp::make(both.view(), down.view(), {.compute = type, .calls = calls}).value();
      std::vector<float> scratch(m.scratch_size());
      owned_matrix const x("x", 80, 64);
      owned_matrix whole(80, 64);
      ASSERT_TRUE(m.apply(x.read(), whole.view(), scratch));
      for (std::int64_t n = 1; n <= 33; ++n) {
        owned_matrix y(n, 64);
        ASSERT_TRUE(m.apply(x.slice(40, n), y.view(), scratch));
        ASSERT_TRUE(test::same_bits(y[0], whole[40], n * 64)) << n;
      }
    }
  }
}

TEST(mlp, takes_very_negative_gates_for_closed) {
  owned_matrix both(2, 1);
  both.values = {1, 1};
  owned_matrix down(1, 1);
  down.values = {1};
  mlp const m = mlp::make(both.view(), down.view()).value();
  std::vector<float> scratch(m.scratch_size());
  owned_matrix x(1, 1);
  owned_matrix y(1, 1);
  x.values = {-1000};
  ASSERT_TRUE(m.apply(x.read(), y.view(), scratch));
  EXPECT_EQ(y.values[0], 0.0F);
}

TEST(mlp, refuses_what_does_not_fit) {
  owned_matrix const both("gate and up", 2 * 7, 5);
  owned_matrix const down("down", 5, 7);
  EXPECT_FALSE(mlp::make(both.slice(0, 13), down.view()));
  EXPECT_FALSE(mlp::make(both.view(), down.slice(0, 4)));
  mlp const m = mlp::make(both.view(), down.view()).value();
  owned_matrix y(1, 5);
  std::vector<float> scratch(m.scratch_size() - 1);
  EXPECT_FALSE(m.apply(both.slice(0, 1), y.view(), scratch));
}

}  // namespace
}  // namespace ferry::deepseek
