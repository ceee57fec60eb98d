// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/columns.hpp>

#include "exchange/oracle.hpp"

#include <ferry/exec/cpu/cpu_team.hpp>

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using oracle::dice;

struct level {};
using one_lane = cpu_team<level>;

waiter no_waits{{}, nullptr, nullptr, {}};
one_lane const team{0, 1, no_waits, nullptr, nullptr};

constexpr wire all_wires[] = {wire::f32,      wire::bf16,         wire::fp16,
                              wire::fp8_e4m3, wire::fp8_e4m3fnuz, wire::fp8_ue8m0};

std::vector<float> real_row(int hidden, dice& from) {
  std::vector<float> x;
  for (int i = 0; i < hidden; ++i)
    x.push_back(std::ldexp(static_cast<float>(oracle::pick(from, -100000, 100000)),
                           oracle::pick(from, -40, 0)));
  return x;
}

TEST(columns, visit_each_element_of_a_row_once) {
  for (int hidden : {1, 127, 128, 255, 256, 257, 2880}) {
    std::vector<int> visits(static_cast<std::size_t>(hidden), 0);
    for_each_tile(team, hidden, [&](int column, int n) {
      for (int i = 0; i < n; ++i) ++visits[static_cast<std::size_t>(column + i)];
    });
    for (int v : visits) ASSERT_EQ(v, 1);
  }
}

TEST(columns, store_every_format_as_the_oracle_does_and_nothing_behind) {
  dice from(3);
  for (int hidden : {1, 2, 127, 128, 129, 256, 300, 1000})
    for (wire format : all_wires) {
      std::vector<float> const x = real_row(hidden, from);
      oracle::wire_row const want = oracle::in_wire(x, format);
      alignas(16) std::byte storage[8192], scale_storage[256], fnuz_storage[256];
      std::fill(std::begin(storage), std::end(storage), std::byte{0xA5});
      std::fill(std::begin(scale_storage), std::end(scale_storage), std::byte{0xA5});
      row_place const to{storage, scale_storage, fnuz_storage};
      for_each_tile(team, hidden, [&](int column, int n) {
        float v[one_lane::columns];
        load_columns<float>(reinterpret_cast<std::byte const*>(x.data()), column, n, v);
        store_wire(team, format, to, column, n, v);
      });
      SCOPED_TRACE(std::to_string(hidden) + " " + to_string(format));
      EXPECT_EQ(std::memcmp(storage, want.row.data(), want.row.size()), 0);
      EXPECT_EQ(storage[want.row.size()], std::byte{0xA5});
      if (!want.scales.empty()) {
        EXPECT_EQ(std::memcmp(scale_storage, want.scales.data(), want.scales.size()), 0);
      }
      EXPECT_EQ(scale_storage[want.scales.size()], std::byte{0xA5});
      if (!want.fnuz_scales.empty()) {
        EXPECT_EQ(std::memcmp(fnuz_storage, want.fnuz_scales.data(), want.fnuz_scales.size()), 0);
      }
      if (format == wire::fp8_ue8m0) continue;  // never comes home
      std::vector<float> const back =
          oracle::out_of_wire(want.row.data(), want.scales.data(), format, hidden, 0);
      for_each_tile(team, hidden, [&](int column, int n) {
        float v[one_lane::columns];
        load_wire(format, storage, scale_storage, column, n, v);
        for (int i = 0; i < n; ++i)
          ASSERT_EQ(bits_of(v[i]), bits_of(back[static_cast<std::size_t>(column + i)]));
      });
    }
}

TEST(columns, load_zeros_behind_the_end_of_a_row) {
  std::vector<float> const x(10, 3.0f);
  float v[one_lane::columns];
  load_columns<float>(reinterpret_cast<std::byte const*>(x.data()), 0, 10, v);
  for (int i = 0; i < one_lane::columns; ++i) ASSERT_EQ(v[i], i < 10 ? 3.0f : 0.0f);
}

TEST(columns, lose_only_the_element_that_is_nan_and_saturate_infinities) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<float> x(256, 1.0f);
  x[5] = std::numeric_limits<float>::quiet_NaN();
  x[7] = -inf;
  alignas(16) std::byte row[256], scales[8];
  for_each_tile(team, 256, [&](int column, int n) {
    float v[one_lane::columns];
    load_columns<float>(reinterpret_cast<std::byte const*>(x.data()), column, n, v);
    store_wire(team, wire::fp8_e4m3, {row, scales, nullptr}, column, n, v);
  });
  float v[one_lane::columns];
  load_wire(wire::fp8_e4m3, row, scales, 0, 256, v);
  EXPECT_TRUE(std::isnan(v[5]));
  EXPECT_EQ(v[7], -1.0f) << "the largest value that the block has";
  EXPECT_EQ(v[0], 1.0f);
  EXPECT_EQ(v[200], 1.0f);
}

TEST(columns, add_in_one_rounding) {
  float sum[2] = {-1.0f, 0.0f};
  float const x = 1.0f + 0x1p-12f;
  float const v[2] = {x, 2.0f};
  add_columns(x, v, sum);
  EXPECT_EQ(sum[0], std::fma(x, x, -1.0f));
  EXPECT_NE(sum[0], x * x - 1.0f);
  EXPECT_EQ(sum[1], 2 * x);
}

TEST(columns, visit_the_type_that_is_named) {
  for (dtype type : {dtype::f32, dtype::bf16, dtype::fp16})
    visit_float_type(type, [&]<class T>(T) { EXPECT_EQ(dtype_of<T>, type); });
}

}  // namespace
