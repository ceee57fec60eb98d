// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/add_rows.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

TEST(add_rows, adds_rows_of_any_width_and_stride_on_every_strip) {
  for (std::int64_t n : {0, 1, 15, 16, 17, 511, 512, 513, 1100}) {
    auto const from = random_floats(static_cast<std::size_t>(3 * n + 9));
    auto const before = random_floats(static_cast<std::size_t>(3 * (n + 2)), 1, 2);
    auto const found = stored_by_every_strip(before, 0, [&](auto const& s, float* out, float*) {
      add_rows{{from.data(), 3, n, n + 3}, {out, 3, n, n + 2}}(s);
    });
    for (std::int64_t row = 0; row < 3; ++row) {
      for (std::int64_t i = 0; i < n + 2; ++i) {
        auto const at = static_cast<std::size_t>(row * (n + 2) + i);
        float const added = i < n ? from[static_cast<std::size_t>(row * (n + 3) + i)] : 0;
        ASSERT_EQ(found[at], before[at] + added) << n << ", row " << row << ", column " << i;
      }
    }
  }
}

TEST(add_rows, does_nothing_without_rows) {
  auto const before = random_floats(5);
  EXPECT_EQ(stored_by_every_strip(before, 0,
                                  [&](auto const& s, float* out, float*) {
                                    add_rows{{before.data(), 0, 5, 5}, {out, 0, 5, 5}}(s);
                                  }),
            before);
}

}  // namespace
}  // namespace ferry::deepseek
