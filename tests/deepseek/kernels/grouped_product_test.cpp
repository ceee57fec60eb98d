// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/grouped_product.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

template <class T>
std::vector<T> as(std::vector<float> const& values) {
  std::vector<T> codes;
  for (float v : values) codes.push_back(from_float<T>(v));
  return codes;
}

/// The order that the header promises.
template <class T>
float expected(T const* x, T const* w, std::int64_t n) {
  float lane[16] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    lane[i % 16] = std::fma(to_float(x[i]), to_float(w[i]), lane[i % 16]);
  }
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

template <class T>
void multiply_groups() {
  std::int32_t const starts[] = {0, 8, 16, 20};
  std::int32_t const counts[] = {6, 0, 1, 9};
  for (auto const [in, out] : {std::array{40, 9}, {16, 4}, {1, 1}, {7, 3}}) {
    auto const x = as<T>(random_floats(static_cast<std::size_t>(30 * in)));
    auto const w = as<T>(random_floats(static_cast<std::size_t>(4 * out * in), 1, 2));
    auto const y = stored_by_every_strip(static_cast<std::size_t>(30 * out), 7.0F,
                                         [&](auto const& s, float* to) {
                                           grouped_product<T>{.x = x.data(),
                                                              .x_stride = in,
                                                              .weights = w.data(),
                                                              .y = to,
                                                              .y_stride = out,
                                                              .starts = starts,
                                                              .counts = counts,
                                                              .groups = 4,
                                                              .in = in,
                                                              .out = out}(s);
                                         });
    std::vector<float> all(y.size(), 7);
    for (int g = 0; g < 4; ++g) {
      for (int r = starts[g]; r < starts[g] + counts[g]; ++r) {
        for (int o = 0; o < out; ++o) {
          all[static_cast<std::size_t>(r * out + o)] =
              expected(x.data() + r * in, w.data() + (g * out + o) * in, in);
        }
      }
    }
    EXPECT_EQ(y, all) << in << " by " << out;
  }
}

TEST(grouped_product, multiplies_each_group_by_its_own_weights) {
  multiply_groups<float>();
  multiply_groups<bf16>();
}

TEST(grouped_product, gives_a_row_the_same_bits_beside_any_other_rows) {
  std::int64_t const in = 50, out = 10;
  auto const x = random_floats(static_cast<std::size_t>(9 * in));
  auto const w = random_floats(static_cast<std::size_t>(out * in), 1, 2);
  auto const product = [&](std::int64_t first, std::int64_t rows) {
    return stored_by_every_strip(static_cast<std::size_t>(rows * out), 7.0F,
                                 [&](auto const& s, float* to) {
                                   grouped_product<float>{.x = x.data() + first * in,
                                                          .x_stride = in,
                                                          .weights = w.data(),
                                                          .y = to,
                                                          .y_stride = out,
                                                          .rows = rows,
                                                          .in = in,
                                                          .out = out}(s);
                                 });
  };
  auto const all = product(0, 9);
  for (std::int64_t first = 0; first < 9; ++first) {
    for (std::int64_t rows = 1; first + rows <= 9; ++rows) {
      auto const some = product(first, rows);
      ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin() + first * out));
    }
  }
  EXPECT_TRUE(product(0, 0).empty());
}

TEST(grouped_product, finds_the_parts_of_heads_within_a_row) {
  std::int64_t const heads = 3, in = 20, out = 5, x_row = 70, y_row = 21;
  auto const x = random_floats(static_cast<std::size_t>(2 * x_row));
  auto const w = random_floats(static_cast<std::size_t>(heads * out * in), 1, 2);
  auto const y = stored_by_every_strip(static_cast<std::size_t>(2 * y_row), 7.0F,
                                       [&](auto const& s, float* to) {
                                         grouped_product<float>{.x = x.data(),
                                                                .x_stride = x_row,
                                                                .x_group = 23,
                                                                .weights = w.data(),
                                                                .y = to,
                                                                .y_stride = y_row,
                                                                .y_group = 7,
                                                                .groups = heads,
                                                                .rows = 2,
                                                                .in = in,
                                                                .out = out}(s);
                                       });
  std::vector<float> all(y.size(), 7);
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t o = 0; o < out; ++o) {
        all[static_cast<std::size_t>(r * y_row + h * 7 + o)] =
            expected(x.data() + r * x_row + h * 23, w.data() + (h * out + o) * in, in);
      }
    }
  }
  EXPECT_EQ(y, all);
}

}  // namespace
}  // namespace ferry::deepseek
