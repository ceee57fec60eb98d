// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/pieces.hpp>

#include "exchange/oracle.hpp"
#include "transport/team_doubles.hpp"

#include <ferry/kernels/columns.hpp>
#include <ferry/transport/mapped.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace {

using namespace ferry;
using namespace ferry::oracle;

std::uint32_t bf16_pair(dice& from) {
  static constexpr std::uint32_t special[] = {0x7F80, 0xFF80, 0x7FC0, 0xFFC1, 0x0000,
                                              0x8000, 0x0001, 0x7F7F, 0xFF7F};
  auto const one = [&] {
    return one_in(from, 6) ? pick_one(from, special)
                           : static_cast<std::uint32_t>(pick(from, 0, 0xFFFF));
  };
  std::uint32_t const low = one();
  return low | one() << 16;
}

// With either kind of scale a block's scale is the one of its block_range.
TEST(pieces, give_the_scale_that_a_block_range_gives) {
  dice from(11);
  using plain = e4m3_codes<software_codes>;
  using power = power_scaled_codes<software_codes>;
  for (int n = 0; n < 3000; ++n) {
    piece a, b;
    bool const tame = n % 2 == 0;
    for (piece* p : {&a, &b})
      for (std::uint32_t& w : p->word) w = bf16_pair(from) & (tame ? 0xBF7FBF7Fu : ~0u);
    block_range want;
    for (piece const* p : {&a, &b}) {
      float x[8];
      unpack_bf16(*p, x);
      for (float v : x) want.add(v);
    }
    ASSERT_EQ(bits_of(plain::scale_of(largest_bf16<plain>(a, b))),
              bits_of(block_scale<e4m3>(want)));
    ASSERT_EQ(power::scale_of(largest_bf16<power>(a, b)), block_exponent(want));
  }
}

TEST(pieces, unpack_in_the_order_of_memory_and_pack_again) {
  bf16 const row[8] = {from_float<bf16>(1), from_float<bf16>(-2),   from_float<bf16>(3.5f),
                       from_float<bf16>(4), from_float<bf16>(5),    from_float<bf16>(1e30f),
                       from_float<bf16>(7), from_float<bf16>(-0.0f)};
  auto const p = std::bit_cast<piece>(row);
  float x[8];
  unpack_bf16(p, x);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(bits_of(x[i]), bits_of(to_float(row[i])));
  piece const back = pack_bf16(x);
  EXPECT_EQ(std::memcmp(&back, &p, sizeof p), 0);
}

TEST(pieces, add_in_one_rounding) {
  float const x[8] = {1.0078125f, 2, 3, 4, 5, 6, 7, 8};
  float sum[8] = {-1.0f};
  add_bf16(1.0f + 0x1p-12f, pack_bf16(x), sum);
  EXPECT_EQ(sum[0], std::fma(1.0f + 0x1p-12f, 1.0078125f, -1.0f));
  EXPECT_EQ(sum[7], 8 * (1.0f + 0x1p-12f));
}

TEST(pieces, cover_a_row_of_any_length_once) {
  constexpr int held = 3;
  using lane = test::lane_of<8>;
  for (int pieces : {1, 7, 8, 9, 23, 24, 25, 60}) {
    std::vector<std::uint32_t> row(static_cast<std::size_t>(pieces) * 4);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<std::uint32_t>(i) + 1;
    std::vector<std::uint32_t> window(row.size() + 4, 0);
    auto* base = reinterpret_cast<std::byte*>(window.data());
    std::vector<std::byte*> table{base};
    mapped_delivery const net{table.data(), 0, 0};
    int const parts = row_part::count<lane, held>(pieces);
    EXPECT_EQ(parts, (pieces + 23) / 24);
    for (int part = 0; part < parts; ++part)
      for (int l = 0; l < 8; ++l) {
        lane const t(l);
        row_part const which = row_part::of<lane, held>(part, pieces);
        piece v[held];
        // Nothing behind the row is read: that would be found by the address sanitizer.
        load_part(t, which, reinterpret_cast<std::byte const*>(row.data()), v);
        put_part(t, net, which, 0, 0, v);
      }
    for (std::size_t i = 0; i < row.size(); ++i) ASSERT_EQ(window[i], row[i]) << pieces;
    for (std::size_t i = row.size(); i < window.size(); ++i) ASSERT_EQ(window[i], 0u);
  }
}

}  // namespace
