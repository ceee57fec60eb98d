// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/quantise_rows.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <ferry/deepseek/reference/act_quant.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

TEST(quantise_rows, gives_what_act_quant_does_on_every_strip) {
  for (std::int64_t n : {1, 31, 128, 129, 300, 1300}) {
    auto const from = random_floats(static_cast<std::size_t>(2 * n), 50);
    auto const found = stored_by_every_strip(from, 0, [&](auto const& s, float* out, float*) {
      quantise_rows{dense<float const>(out, 2, n), dense(out, 2, n)}(s);
    });
    for (std::int64_t row = 0; row < 2; ++row) {
      std::vector<float> const x(from.begin() + row * n, from.begin() + (row + 1) * n);
      auto const expected = reference::act_quant<e4m3>(x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(found[static_cast<std::size_t>(row * n) + i],
                  to_float(expected.codes[i]) * expected.scales[i / scale_block]);
      }
    }
  }
}

TEST(quantise_rows, loses_only_what_is_no_number) {
  auto const from = odd_floats(200);
  auto const found = stored_by_every_strip(200, 7.0F, [&](auto const& s, float* out) {
    quantise_rows{dense(from.data(), 1, 200), dense(out, 1, 200)}(s);
  });
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(std::isnan(found[i]), std::isnan(from[i])) << i;
}

}  // namespace
}  // namespace ferry::deepseek
