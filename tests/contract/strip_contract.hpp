// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What every strip must do, whatever the device.
#pragma once

#include <ferry/base/number_formats.hpp>
#include <ferry/exec/strip.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>

namespace ferry::test {

/// Checks a strip; all its lanes call this.
template <strip Strip>
void expect_strip(Strip const& s) {
  float each[16];
  for (int i = 0; i < 16; ++i)
    each[i] = std::ldexp(1.0F + static_cast<float>(i) * 0.37F, i * 3 % 11);
  auto const v = s.load(each);
  // The tree that strip.hpp promises.
  float tree[16];
  std::copy(each, each + 16, tree);
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) tree[i] += tree[i + half];
  }
  EXPECT_EQ(s.sum(v), tree[0]);
  float const in_a_row = std::accumulate(each, each + 16, 0.0F);
  EXPECT_NE(s.sum(v), in_a_row) << "the numbers are to tell orders apart";
  EXPECT_EQ(s.largest(v), *std::max_element(each, each + 16));
  EXPECT_EQ(s.first_equal(v, each[11]), 11);
  EXPECT_EQ(s.first_equal(v, -1.0F), 16);
  EXPECT_EQ(s.first_equal(s.fill(3), 3.0F), 0);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(s.at_lane(v, i), each[i]);

  float const some[] = {NAN, 5, NAN, 2};
  EXPECT_EQ(s.largest(s.load_first(some, 4, NAN)), 5);
  EXPECT_EQ(s.sum(s.load_first(each, 5, 0)), (each[0] + each[4]) + each[2] + (each[1] + each[3]));
  EXPECT_EQ(s.sum(s.load_first(each, 0, 2)), 32);
  bf16 const narrow[] = {from_float<bf16>(1.5F), from_float<bf16>(-4)};
  EXPECT_EQ(s.sum(s.load_first(narrow, 2, 0)), -2.5F);

  auto const w = s.map([](float a, float b) { return a - b; }, v, s.fill(1));
  EXPECT_EQ(s.at_lane(w, 7), each[7] - 1);
  EXPECT_EQ(s.at_lane(s.larger(v, s.fill(40)), 0), 40);
  EXPECT_EQ(s.at_lane(s.larger(s.fill(NAN), v), 3), each[3]);
  EXPECT_EQ(s.at_lane(v + 2.0F * v * v, 2), each[2] + 2 * each[2] * each[2]);
  auto const third = s.fill(1.0F / 3);
  EXPECT_EQ(s.at_lane(s.multiply_add(third, s.fill(3), s.fill(-1)), 9),
            std::fma(1.0F / 3, 3.0F, -1.0F));

  std::int32_t mine = 0;
  s.for_each(37, [&](std::int64_t i) { mine += static_cast<std::int32_t>(i); });
  EXPECT_EQ(s.merge(mine, [](std::int32_t a, std::int32_t b) { return a + b; }), 37 * 36 / 2);
  int leaders = s.merge(std::int32_t{s.leader()}, [](int a, int b) { return a + b; });
  EXPECT_EQ(leaders, 1);
}

/// Checks what a strip stores; `memory` is its own, of 20 floats.
template <strip Strip>
void expect_stores(Strip const& s, float* memory) {
  float each[16];
  for (int i = 0; i < 16; ++i) each[i] = static_cast<float>(i * i);
  s.store(s.load(each), memory);
  auto const ones = s.fill(1);
  s.store_four(s.sum_four(s.load(each), ones, ones + ones, s.load(each) * s.load(each)) * 0.5F,
               memory + 16);
  s.sync();
  for (int i = 0; i < 16; ++i) EXPECT_EQ(memory[i], each[i]);
  EXPECT_EQ(memory[16], 620);
  EXPECT_EQ(memory[17], 8);
  EXPECT_EQ(memory[18], 16);
  EXPECT_EQ(memory[19], 89156);
}

}  // namespace ferry::test
