// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/row_loops.hpp"

#include <ferry/deepseek/reference/act_quant.hpp>
#include <ferry/exec/cpu/code_level.hpp>

#include "deepseek/owned_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ferry::deepseek {

template <>
row_loops const& row_loops_of<level_v2>();
template <>
row_loops const& row_loops_of<level_v3>();
template <>
row_loops const& row_loops_of<level_v4>();

namespace {

using test::owned_matrix;
using test::same_bits;

/// The levels that this machine can run.
std::vector<row_loops const*> levels() {
  std::vector<row_loops const*> all{&row_loops_of<level_v2>()};
  if (best_code_level() >= code_level::v3) all.push_back(&row_loops_of<level_v3>());
  if (best_code_level() >= code_level::v4) all.push_back(&row_loops_of<level_v4>());
  return all;
}

gate_rows in_place(float* values, std::int64_t rows, std::int64_t width) {
  return {dense<float const>(values, rows, 2 * width), dense(values, rows, width)};
}

TEST(row_loops, attend_as_the_definition_says_on_every_level) {
  for (auto [count, heads, columns, latent] :
       {std::array{1, 1, 2, 1}, {4, 3, 30, 24}, {17, 4, 80, 64}, {70, 2, 41, 33}}) {
    owned_matrix const q("q", heads, columns, 3);
    owned_matrix const rows("rows", count, columns);
    std::vector<float> first;
    for (row_loops const* level : levels()) {
      owned_matrix scores(heads, count);
      owned_matrix out(heads, latent);
      std::int32_t const sequence = 0;
      std::int32_t const position = count - 1;
      level->attend({.queries = q[0],
                     .cache = rows[0],
                     .sequences = &sequence,
                     .positions = &position,
                     .tokens = 1,
                     .heads = heads,
                     .columns = columns,
                     .latent = latent,
                     .scale = 0.7F,
                     .scores = scores.values.data(),
                     .out = out.values.data()});
      for (int h = 0; h < heads; ++h) {
        std::vector<double> expected(static_cast<std::size_t>(latent));
        double total = 0;
        for (int p = 0; p < count; ++p) {
          double score = 0;
          for (int i = 0; i < columns; ++i) score += double{q[h][i]} * double{rows[p][i]};
          double const weight = std::exp(double{0.7F} * score);
          total += weight;
          for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += weight * rows[p][i];
        }
        for (double& v : expected) v /= total;
        EXPECT_LT(test::distance(out[h], expected.data(), latent), 5e-6) << count;
      }
      if (first.empty()) first = out.values;
      EXPECT_TRUE(same_bits(first.data(), out[0], heads * latent));
    }
  }
}

TEST(row_loops, gate_with_silu_over_the_whole_range_of_f32) {
  std::vector<float> xs{0, -0.0F, 1e-30F, -1e-30F, 88, -88, 89, -89, 103, -103, 105, -105};
  for (float x = -110; x < 110; x += 0.37F) xs.push_back(x);
  for (float x : {1e30F, -1e30F, std::numeric_limits<float>::max()}) xs.push_back(x);
  auto const width = static_cast<std::int64_t>(xs.size());
  std::vector<float> first;
  for (row_loops const* level : levels()) {
    std::vector<float> values = xs;
    values.resize(2 * xs.size(), 1);
    level->gate(in_place(values.data(), 1, width));
    for (std::size_t i = 0; i < xs.size(); ++i) {
      double const x = xs[i];
      double const expected = x / (1 + std::exp(-x));
      EXPECT_NEAR(values[i], expected, 4e-7 * std::fabs(expected) + 1e-36) << x;
    }
    if (first.empty()) first = values;
    EXPECT_TRUE(same_bits(first.data(), values.data(), width));
  }
}

TEST(row_loops, keep_what_is_no_number_when_gating) {
  for (row_loops const* level : levels()) {
    float values[] = {NAN, -HUGE_VALF, 1, HUGE_VALF, 1, 1, NAN, 1};
    level->gate(in_place(values, 1, 4));
    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_TRUE(std::isnan(values[1]));  // -inf times 0, as the plain formula has it
    EXPECT_TRUE(std::isnan(values[2]));
    EXPECT_EQ(values[3], HUGE_VALF);
  }
}

TEST(row_loops, gate_many_rows_in_place_at_any_width) {
  for (std::int64_t width : {1, 15, 16, 17, 48, 100}) {
    owned_matrix const before("rows", 9, 2 * width, 4);
    for (row_loops const* level : levels()) {
      owned_matrix values = before;
      level->gate(in_place(values.values.data(), 9, width));
      for (std::int64_t row = 0; row < 9; ++row) {
        for (std::int64_t i = 0; i < width; ++i) {
          double const g = before[row][i];
          ASSERT_NEAR(values.values[static_cast<std::size_t>(row * width + i)],
                      g / (1 + std::exp(-g)) * before[row][width + i], 4e-6);
        }
      }
    }
  }
}

TEST(row_loops, give_the_same_bits_on_every_level) {
  for (std::int64_t n : {1, 31, 128, 300}) {
    owned_matrix const x("x", 1, n, 5);
    owned_matrix const w("w", 1, n);
    std::vector<std::vector<float>> found;
    std::vector<std::vector<bf16>> codes;
    for (row_loops const* level : levels()) {
      owned_matrix normal(1, n);
      level->normalise({dense(x[0], 1, n), w[0], 1e-6F, dense(normal.values.data(), 1, n)});
      owned_matrix sum = w;
      level->add({dense(x[0], 1, n), dense(sum.values.data(), 1, n)});
      owned_matrix fp8(1, n);
      level->quantise({dense(x[0], 1, n), dense(fp8.values.data(), 1, n)});
      auto const expected = reference::act_quant<e4m3>(x.values);
      for (std::size_t i = 0; i < x.values.size(); ++i) {
        EXPECT_EQ(sum.values[i], x.values[i] + w.values[i]);
        EXPECT_EQ(fp8.values[i], to_float(expected.codes[i]) * expected.scales[i / scale_block]);
      }
      found.push_back(normal.values);
      codes.emplace_back(x.values.size());
      level->narrow({dense(x[0], 1, n), dense(codes.back().data(), 1, n)});
      EXPECT_EQ(found.back(), found.front());
      EXPECT_EQ(codes.back(), codes.front());
      EXPECT_EQ(codes.back().back(), from_float<bf16>(x.values.back()));
    }
  }
}

TEST(row_loops, decode_every_code_of_every_wire) {
  std::vector<std::uint8_t> codes(256);
  for (std::size_t i = 0; i < 256; ++i) codes[i] = static_cast<std::uint8_t>(i);
  float const scales[] = {0.25F, 3};
  e8m0 const exponents[] = {{125}, {128}};
  auto const* row = reinterpret_cast<std::byte const*>(codes.data());
  auto const* f32_scales = reinterpret_cast<std::byte const*>(scales);
  for (row_loops const* level : levels()) {
    float to[256];
    auto const expect = [&](auto value) {
      for (std::size_t i = 0; i < 256; ++i) {
        float const expected = value(i);
        EXPECT_TRUE(to[i] == expected || (std::isnan(to[i]) && std::isnan(expected))) << i;
      }
    };
    auto const decode = [&](wire format, std::byte const* with) {
      level->decode({.format = format, .rows = row, .scales = with, .to = dense(to, 1, 256)});
    };
    decode(wire::fp8_e4m3, f32_scales);
    expect([&](std::size_t i) { return to_float(e4m3{codes[i]}) * scales[i / 128]; });
    decode(wire::fp8_e4m3fnuz, f32_scales);
    expect([&](std::size_t i) { return to_float(e4m3fnuz{codes[i]}) * scales[i / 128]; });
    decode(wire::fp8_ue8m0, reinterpret_cast<std::byte const*>(exponents));
    expect([&](std::size_t i) { return to_float(e4m3{codes[i]}) * (i < 128 ? 0.25F : 2.0F); });
  }
}

}  // namespace
}  // namespace ferry::deepseek
