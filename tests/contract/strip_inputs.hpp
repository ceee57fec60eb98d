// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What the strips' suite gives to strips, and what it expects of them.
#pragma once

#include "contract/strip_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ferry::test {

/// The sum by the tree that strip.hpp promises.
inline float tree_sum(std::vector<float> tree) {
  for (std::size_t half = tree.size() / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) tree[i] += tree[i + half];
  return tree[0];
}

inline strip_inputs make_strip_inputs() {
  strip_inputs in{};
  for (int i = 0; i < 16; ++i) {
    in.each[i] = std::ldexp(1.0F + static_cast<float>(i) * 0.37F, i * 3 % 11);
    in.squares[i] = static_cast<float>(i * i);
  }
  float const some[] = {NAN, 5, NAN, 2};
  std::copy(some, some + 4, in.some);
  in.narrow[0] = from_float<bf16>(1.5F);
  in.narrow[1] = from_float<bf16>(-4);
  std::vector<float> few(in.each, in.each + 16);
  in.sum = tree_sum(few);
  std::fill(few.begin() + 5, few.end(), 0.0F);
  in.sum_of_five = tree_sum(few);
  in.largest = *std::max_element(in.each, in.each + 16);
  in.third = 1.0F / 3;
  in.fused = std::fma(in.third, 3.0F, -1.0F);
  return in;
}

}  // namespace ferry::test
