// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/decode_rows.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

std::vector<std::byte> random_bytes(std::size_t n) {
  std::mt19937 random(3);
  std::vector<std::byte> bytes(n + 1);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

constexpr std::int64_t width = 1100;  // not a multiple of a block, more than one piece
constexpr std::int64_t blocks = 9;

std::vector<float> decoded(wire format, bool fnuz, std::byte const* rows, std::int64_t code_bytes,
                           std::byte const* scales, std::int64_t scale_bytes) {
  std::int32_t const index[] = {2, -1, 0, 2};
  return stored_by_every_strip(4 * width, 7.0F, [&](auto const& s, float* out) {
    decode_rows{.format = format,
                .fnuz = fnuz,
                .rows = rows,
                .row_stride = width * code_bytes,
                .scales = scales,
                .scale_stride = blocks * scale_bytes,
                .index = index,
                .to = dense(out, 4, width)}(s);
  });
}

template <class T, class Scale>
void expect_values(wire format) {
  auto const rows = random_bytes(3 * width * sizeof(T));
  std::vector<std::byte> scales(3 * blocks * 4);
  for (std::size_t i = 0; i < 3 * blocks; ++i) {
    Scale const scale = from_float<Scale>(std::ldexp(1.0F, static_cast<int>(i % 9) - 4));
    std::memcpy(scales.data() + i * sizeof scale, &scale, sizeof scale);
  }
  bool const fnuz = std::is_same_v<T, e4m3fnuz>;
  auto const found =
      decoded(format, fnuz, rows.data() + 1, sizeof(T), scales.data(), sizeof(Scale));
  std::int64_t const sources[] = {2, -1, 0, 2};
  for (std::int64_t r = 0; r < 4; ++r) {
    for (std::int64_t i = 0; i < width; ++i) {
      float const one = found[static_cast<std::size_t>(r * width + i)];
      if (sources[r] < 0) {
        ASSERT_EQ(one, 7);
        continue;
      }
      T code;
      std::memcpy(&code, rows.data() + 1 + (sources[r] * width + i) * std::int64_t{sizeof code},
                  sizeof code);
      bool const scaled = format != wire::f32 && format != wire::bf16 && format != wire::fp16;
      int const block = static_cast<int>((sources[r] * blocks + i / scale_block) % 9) - 4;
      float const expected = to_float(code) * (scaled ? std::ldexp(1.0F, block) : 1.0F);
      ASSERT_TRUE(test::same(one, expected)) << r << ' ' << i;
    }
  }
}

TEST(decode_rows, reads_every_wire_by_index_at_any_byte) {
  expect_values<float, float>(wire::f32);
  expect_values<bf16, float>(wire::bf16);
  expect_values<fp16, float>(wire::fp16);
  expect_values<e4m3, float>(wire::fp8_e4m3);
  expect_values<e4m3fnuz, float>(wire::fp8_e4m3fnuz);
  expect_values<e4m3, e8m0>(wire::fp8_ue8m0);
  expect_values<e4m3fnuz, e8m0>(wire::fp8_ue8m0);
}

TEST(decode_rows, stops_at_the_end_that_lies_on_the_device) {
  auto const from = random_floats(5 * 20);
  for (std::int32_t end : {0, 3, 9}) {
    auto const found = stored_by_every_strip(5 * 20, 7.0F, [&](auto const& s, float* out) {
      decode_rows{.rows = reinterpret_cast<std::byte const*>(from.data()),
                  .row_stride = 80,
                  .end = &end,
                  .to = dense(out, 5, 20)}(s);
    });
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(found[i], static_cast<std::int32_t>(i / 20) < end ? from[i] : 7) << end;
    }
  }
}

}  // namespace
}  // namespace ferry::deepseek
