// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/narrow_rows.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

TEST(narrow_rows, rounds_to_the_nearest_bf16_on_every_strip) {
  for (std::int64_t n : {1, 16, 31, 600}) {
    auto from = random_floats(static_cast<std::size_t>(2 * n), 100);
    auto const odd = odd_floats(static_cast<std::size_t>(n));
    from.insert(from.end(), odd.begin(), odd.end());
    auto const found = stored_by_every_strip(from.size(), bf16{1}, [&](auto const& s, bf16* out) {
      narrow_rows{dense(from.data(), 3, n), dense(out, 3, n)}(s);
    });
    for (std::size_t i = 0; i < from.size(); ++i) EXPECT_EQ(found[i], from_float<bf16>(from[i]));
  }
}

}  // namespace
}  // namespace ferry::deepseek
