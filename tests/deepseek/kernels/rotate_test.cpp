// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/rotate.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

TEST(rotate, turns_each_head_by_its_token_s_position) {
  for (int dimensions : {2, 16, 30, 64}) {
    int const pairs = dimensions / 2;
    auto const angles = random_floats(static_cast<std::size_t>(6 * dimensions), 3, 2);
    std::int32_t const positions[] = {5, 0, -1, 2};
    int const heads = 3, from_head = dimensions + 4, to_head = dimensions + 1;
    auto const from = random_floats(static_cast<std::size_t>(4 * heads * from_head));
    auto const found = stored_by_every_strip(static_cast<std::size_t>(4 * heads * to_head), 7.0F,
                                             [&](auto const& s, float* out) {
                                               rotate_heads{.from = from.data(),
                                                            .from_token = heads * from_head,
                                                            .from_head = from_head,
                                                            .to = out,
                                                            .to_token = heads * to_head,
                                                            .to_head = to_head,
                                                            .positions = positions,
                                                            .angles = angles.data(),
                                                            .dimensions = dimensions,
                                                            .tokens = 4,
                                                            .heads = heads}(s);
                                             });
    for (int item = 0; item < 4 * heads; ++item) {
      int const position = positions[item / heads];
      float const* const x = from.data() + item * from_head;
      float const* const y = found.data() + item * to_head;
      for (int i = 0; i < pairs; ++i) {
        if (position < 0) {
          EXPECT_EQ(y[2 * i], 7);
          continue;
        }
        float const c = angles[static_cast<std::size_t>(position * dimensions + i)];
        float const sine = angles[static_cast<std::size_t>(position * dimensions + pairs + i)];
        EXPECT_NEAR(y[2 * i], x[2 * i] * c - x[2 * i + 1] * sine, 1e-6);
        EXPECT_NEAR(y[2 * i + 1], x[2 * i] * sine + x[2 * i + 1] * c, 1e-6);
      }
      EXPECT_EQ(y[dimensions], 7);
    }
  }
}

}  // namespace
}  // namespace ferry::deepseek
