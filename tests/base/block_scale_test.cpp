// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/base/block_scale.hpp>

#include "base/finite_codes.hpp"
#include "data/golden_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace ferry {

static block_range range_of(std::vector<float> const& block) {
  block_range range;
  for (float x : block) range.add(x);
  return range;
}

static std::vector<float> random_block(std::mt19937& random, float spread) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> block(scale_block);
  for (float& x : block) x = normal(random);
  return block;
}

TEST(block_scale, finds_the_largest_finite_magnitude) {
  EXPECT_EQ(range_of({}).amax(), 0.0f);
  EXPECT_EQ(range_of({0.0f, -0.0f}).amax(), 0.0f);
  EXPECT_EQ(range_of({1.0f, -3.0f, 2.0f}).amax(), 3.0f);
  EXPECT_EQ(range_of({1.0f, -INFINITY, INFINITY, -2.0f}).amax(), 2.0f);
  EXPECT_EQ(range_of({NAN, 5.0f, -NAN}).amax(), 5.0f);
  EXPECT_EQ(range_of({-largest_finite<float>}).amax(), largest_finite<float>);
}

TEST(block_scale, notices_nan_but_not_infinity) {
  EXPECT_EQ(range_of({1.0f, INFINITY}).has_nan, 0);
  EXPECT_EQ(range_of({1.0f, NAN, 2.0f}).has_nan, 1);
  EXPECT_EQ(range_of({-NAN, NAN}).has_nan, 1);
}

TEST(block_scale, joins_the_ranges_of_parts) {
  block_range whole = range_of({1.0f, -7.0f});
  whole.add(range_of({3.0f, NAN}));
  EXPECT_EQ(whole.amax(), 7.0f);
  EXPECT_EQ(whole.has_nan, 1);
  block_range other = range_of({3.0f});
  other.add(range_of({-9.0f}));
  EXPECT_EQ(other.amax(), 9.0f);
  EXPECT_EQ(other.has_nan, 0);
}

TEST(block_scale, divides_by_the_largest_value_of_the_flavour) {
  EXPECT_EQ(block_scale<e4m3>(448.0f), 1.0f);
  EXPECT_EQ(block_scale<e4m3fnuz>(240.0f), 1.0f);
  EXPECT_EQ(block_scale<e4m3>(1.0f), 1.0f / 448.0f);
  EXPECT_EQ(block_scale<e4m3fnuz>(1.0f), 1.0f / 240.0f);
}

TEST(block_scale, counts_a_block_near_zero_as_1e_minus_4) {
  for (float amax : {0.0f, 1e-30f, 0.99e-4f, 1e-4f}) {
    EXPECT_EQ(block_scale<e4m3>(amax), 1e-4f / 448.0f) << amax;
    EXPECT_EQ(block_scale<e4m3fnuz>(amax), 1e-4f / 240.0f) << amax;
  }
  EXPECT_EQ(quantise<e4m3>(0.0f, block_scale<e4m3>(0.0f)).bits, 0);
  EXPECT_EQ(quantise<e4m3fnuz>(-0.0f, block_scale<e4m3fnuz>(0.0f)).bits, 0);
}

template <class T>
static void quantises_as_the_golden_values(std::string const& flavour) {
  testing::golden_file const golden("fp8/act_quant_1x128.safetensors");
  auto const x = golden.tensor<float>("x");
  auto const codes = golden.tensor<T>(flavour + ".q");
  auto const scales = golden.tensor<float>(flavour + ".scale");
  auto const values = golden.tensor<float>(flavour + ".dequant");
  auto const by_reciprocal = golden.tensor<T>(flavour + "_mulrecip.q");
  int differing = 0;
  for (std::size_t block = 0; block < scales.size(); ++block) {
    std::size_t const first = block * scale_block;
    block_range range;
    for (std::size_t i = first; i < first + scale_block; ++i) range.add(x[i]);
    float const scale = block_scale<T>(range);
    ASSERT_EQ(scale, scales[block]) << "block " << block;
    float const reciprocal = largest_finite<T> / std::max(range.amax(), smallest_amax);
    for (std::size_t i = first; i < first + scale_block; ++i) {
      T const code = quantise<T>(x[i], scale);
      ASSERT_EQ(code, codes[i]) << "element " << i << " = " << x[i];
      ASSERT_EQ(dequantise(code, scale), values[i]) << "element " << i;
      T const other = from_float<T>(x[i] * reciprocal);
      ASSERT_EQ(other, by_reciprocal[i]) << "element " << i << " = " << x[i];
      differing += !(other == code);
    }
  }
  // Multiplying is not what ferry does. That it would give other codes is why.
  ::testing::Test::RecordProperty("codes_that_a_reciprocal_changes", differing);
}

TEST(block_scale, quantises_to_ocp_as_the_golden_values) {
  quantises_as_the_golden_values<e4m3>("e4m3fn");
}
TEST(block_scale, quantises_to_fnuz_as_the_golden_values) {
  quantises_as_the_golden_values<e4m3fnuz>("e4m3fnuz");
}

TEST(block_scale, quantises_with_powers_of_two_as_the_golden_values) {
  testing::golden_file const golden("fp8/act_quant_1x128.safetensors");
  auto const x = golden.tensor<float>("x");
  auto const codes = golden.tensor<e4m3>("e4m3fn_ue8m0.q");
  auto const scales = golden.tensor<float>("e4m3fn_ue8m0.scale");
  auto const values = golden.tensor<float>("e4m3fn_ue8m0.dequant");
  for (std::size_t block = 0; block < scales.size(); ++block) {
    std::size_t const first = block * scale_block;
    block_range range;
    for (std::size_t i = first; i < first + scale_block; ++i) range.add(x[i]);
    e8m0 const scale = block_exponent(range);
    ASSERT_EQ(to_float(scale), scales[block]) << "block " << block;
    for (std::size_t i = first; i < first + scale_block; ++i) {
      e4m3 const code = quantise(x[i], scale);
      e4m3 const expected = codes[i].bits == 0x80 ? e4m3{0} : codes[i];
      ASSERT_EQ(code, expected) << "element " << i << " = " << x[i];
      ASSERT_EQ(dequantise(code, scale), values[i]) << "element " << i;
    }
  }
}

TEST(block_scale, makes_codes_under_a_power_of_two_that_serve_both_flavours) {
  std::mt19937 random(20260101);
  for (int exponent = -20; exponent <= 100; ++exponent) {
    auto const block = random_block(random, std::ldexp(1.7f, exponent));
    e8m0 const ocp = block_exponent(range_of(block));
    e8m0 const fnuz = exponent_for_fnuz(ocp);
    for (float x : block) {
      e4m3 const code = quantise(x, ocp);
      ASSERT_LE(code.bits & 0x7F, 0x7E);
      ASSERT_NE(code.bits, 0x80);
      e4m3fnuz const same_bits{code.bits};
      ASSERT_EQ(dequantise(code, ocp), dequantise(same_bits, fnuz)) << x;
      ASSERT_EQ(half_in_fnuz(code), same_bits);
    }
  }
}

TEST(block_scale, takes_the_smallest_power_of_two_that_holds_the_block) {
  std::mt19937 random(7);
  for (int exponent = -12; exponent <= 60; ++exponent) {
    auto const range = range_of(random_block(random, std::ldexp(1.0f, exponent)));
    float const scale = to_float(block_exponent(range));
    EXPECT_LE(range.amax() / scale, 448.0f);
    EXPECT_GT(range.amax() / scale, 224.0f);
  }
}

TEST(block_scale, multiplies_by_the_reciprocal_power_exactly) {
  std::mt19937 random(11);
  for (int exponent = -30; exponent <= 120; ++exponent) {
    auto const block = random_block(random, std::ldexp(1.0f, exponent));
    e8m0 const scale = block_exponent(range_of(block));
    for (float x : block) {
      e4m3 const divided = from_float<e4m3>(x / to_float(scale));
      ASSERT_EQ(quantise(x, scale), (divided.bits == 0x80 ? e4m3{0} : divided)) << x;
    }
  }
}

TEST(block_scale, finds_the_codes_of_a_division_without_one) {
  if (!finite_codes_use_fma()) GTEST_SKIP() << "this CPU knows no fma";
  std::mt19937 random(13);
  for (int n = 0; n < 4000; ++n) {
    auto block = random_block(random, std::ldexp(1.0f, static_cast<int>(random() % 250) - 126));
    for (int i = 0; i < 32; ++i)  // near each other, far below the largest, and subnormal
      block[random() % scale_block] = std::ldexp(block[0], static_cast<int>(random() % 40) - 39);
    for (float& x : block)
      if (!std::isfinite(x)) x = largest_finite<float>;
    auto const range = range_of(block);
    std::vector<std::uint32_t> ocp(block.size()), fnuz(block.size()), power(block.size());
    finite_codes(block.data(), block.size(), block_scale<e4m3>(range), false, ocp.data());
    finite_codes(block.data(), block.size(), block_scale<e4m3fnuz>(range), true, fnuz.data());
    finite_codes(block.data(), block.size(), block_exponent(range), power.data());
    for (std::size_t i = 0; i < block.size(); ++i) {
      ASSERT_EQ(ocp[i], quantise<e4m3>(block[i], block_scale<e4m3>(range)).bits) << block[i];
      ASSERT_EQ(fnuz[i], quantise<e4m3fnuz>(block[i], block_scale<e4m3fnuz>(range)).bits)
          << block[i];
      ASSERT_EQ(power[i], quantise(block[i], block_exponent(range)).bits) << block[i];
    }
  }
}

TEST(block_scale, sees_at_once_whether_a_block_is_finite) {
  auto const added = [](std::vector<float> const& block) {
    block_range range;
    for (float x : block) range.add_finite(x);
    return range;
  };
  EXPECT_EQ(added({1.0f, -3.0f}).amax(), 3.0f);
  EXPECT_TRUE(added({-largest_finite<float>}).is_finite());
  for (float x : {INFINITY, -INFINITY, NAN, -NAN}) EXPECT_FALSE(added({1.0f, x}).is_finite());
}

TEST(block_scale, stays_inside_e8m0_for_the_smallest_and_the_largest_block) {
  e8m0 const low = block_exponent(range_of({0.0f}));
  e8m0 const high = block_exponent(range_of({largest_finite<float>}));
  EXPECT_EQ(to_float(low), 0x1p-22f);
  EXPECT_EQ(to_float(high), 0x1p120f);
  EXPECT_EQ(to_float(exponent_for_fnuz(high)), 0x1p121f);
  EXPECT_EQ(quantise(0.0f, low).bits, 0);
  EXPECT_EQ(quantise(-0.0f, low).bits, 0);
  // The largest f32 is 256 steps of 2^120, less a bit.
  EXPECT_EQ(quantise(largest_finite<float>, high), from_float<e4m3>(256.0f));
}

TEST(block_scale, saturates_infinity_and_keeps_its_neighbours) {
  std::vector<float> const block{INFINITY, -INFINITY, 1.0f, -2.0f};
  float const scale = block_scale<e4m3>(range_of(block));
  EXPECT_EQ(scale, 2.0f / 448.0f);
  EXPECT_EQ(quantise<e4m3>(INFINITY, scale).bits, 0x7E);
  EXPECT_EQ(quantise<e4m3>(-INFINITY, scale).bits, 0xFE);
  EXPECT_EQ(dequantise(quantise<e4m3>(1.0f, scale), scale), 1.0f);

  float const fnuz_scale = block_scale<e4m3fnuz>(range_of(block));
  EXPECT_EQ(quantise<e4m3fnuz>(INFINITY, fnuz_scale).bits, 0x7F);
  EXPECT_EQ(quantise<e4m3fnuz>(-INFINITY, fnuz_scale).bits, 0xFF);

  e8m0 const power = block_exponent(range_of(block));
  EXPECT_EQ(quantise(INFINITY, power).bits, 0x7E);
  EXPECT_EQ(quantise(-INFINITY, power).bits, 0xFE);
  EXPECT_EQ(dequantise(quantise(-2.0f, power), power), -2.0f);
}

TEST(block_scale, gives_the_nan_code_to_a_nan_under_an_f32_scale_and_to_no_other) {
  std::vector<float> const block{NAN, 448.0f, -1.0f};
  float const scale = block_scale<e4m3>(range_of(block));
  EXPECT_EQ(scale, 1.0f);
  EXPECT_EQ(quantise<e4m3>(NAN, scale).bits, 0x7F);
  EXPECT_EQ(quantise<e4m3>(448.0f, scale).bits, 0x7E);
  EXPECT_EQ(quantise<e4m3fnuz>(NAN, block_scale<e4m3fnuz>(range_of(block))).bits, 0x80);
  EXPECT_TRUE(is_nan(dequantise(quantise<e4m3>(NAN, scale), scale)));
}

TEST(block_scale, sends_nan_in_a_power_of_two_scale_with_codes_of_zero) {
  std::vector<float> const block{1.0f, NAN, -0.0f, INFINITY, -1e30f};
  e8m0 const scale = block_exponent(range_of(block));
  EXPECT_EQ(scale.bits, 0xFF);
  EXPECT_EQ(exponent_for_fnuz(scale).bits, 0xFF);
  for (float x : block) {
    e4m3 const code = quantise(x, scale);
    EXPECT_EQ(code.bits, 0) << x;
    EXPECT_TRUE(is_nan(dequantise(code, scale)));
    EXPECT_TRUE(is_nan(dequantise(e4m3fnuz{code.bits}, exponent_for_fnuz(scale))));
  }
}

}  // namespace ferry
