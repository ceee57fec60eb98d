// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/rope.hpp>

#include <ferry/deepseek/reference/rope.hpp>

#include "deepseek/golden_rope.hpp"
#include "deepseek/owned_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::deepseek {
namespace {

using test::golden_rope;

class rope_golden : public ::testing::TestWithParam<char const*> {};
INSTANTIATE_TEST_SUITE_P(files, rope_golden, ::testing::Values("tiny_A", "deepseek_v3"));

TEST_P(rope_golden, has_the_golden_frequencies_and_scale) {
  golden_rope const golden(GetParam());
  auto const expected = golden.file.tensor<double>("inv_freq_f64");
  auto const found = rope_frequencies(golden.options);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-12 * expected[i]) << i;
    EXPECT_NEAR(reference::rope_frequency(golden.options, static_cast<int>(i)), expected[i],
                1e-12 * expected[i]);
  }
  EXPECT_NEAR(softmax_scale(golden.head, golden.options),
              golden.file.tensor<double>("softmax_scale")[0], 1e-12);
}

TEST_P(rope_golden, has_the_golden_cosines_and_sines) {
  golden_rope const golden(GetParam());
  rope const r = rope::make(golden.options, golden.positions).value();
  auto const positions = golden.file.tensor<std::int32_t>("positions");
  auto const cosines = golden.file.tensor<double>("f64.cos");
  auto const sines = golden.file.tensor<double>("f64.sin");
  std::int64_t const pairs = golden.options.dimensions / 2;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    float const* row = r.at(positions[i]);
    auto const first = static_cast<std::int64_t>(i) * pairs;
    EXPECT_LT(test::distance(row, cosines.values.data() + first, pairs), 1e-7);
    EXPECT_LT(test::distance(row + pairs, sines.values.data() + first, pairs), 1e-7);
  }
}

TEST(rope, turns_neighbours_as_pairs) {
  rope_options const options{8, 10000, {}};
  rope const r = rope::make(options, 100).value();
  test::owned_matrix const x("x", 1, 8);
  for (std::int64_t position : {0, 1, 57, 99}) {
    float found[8];
    r.turn(x[0], position, found);
    auto const expected = reference::turn(options, {x[0], x[0] + 8}, position);
    EXPECT_LT(test::distance(found, expected.data(), 8), 1e-6) << position;
  }
  float in_place[8];
  std::copy_n(x[0], 8, in_place);
  float apart[8];
  r.turn(x[0], 33, apart);
  r.turn(in_place, 33, in_place);
  EXPECT_TRUE(test::same_bits(in_place, apart, 8));
}

TEST(rope, scales_turned_vectors_where_the_two_mscales_differ) {
  yarn stretch;
  stretch.factor = 4;
  stretch.mscale = 1;
  stretch.mscale_all_dim = 0;
  rope const r = rope::make({4, 10000, stretch}, 2).value();
  EXPECT_NEAR(r.at(0)[0], 0.1 * std::log(4.0) + 1, 1e-6);
  EXPECT_NEAR(softmax_scale(48, {4, 10000, stretch}), 1 / std::sqrt(48.0), 1e-12);
}

TEST(rope, refuses_sizes_outside_their_limits) {
  EXPECT_THAT(rope::make({7, 10000, {}}, 4).error().message, ::testing::HasSubstr("7"));
  EXPECT_EQ(rope::make({0, 10000, {}}, 4).error().code, error_code::invalid_argument);
  EXPECT_EQ(rope::make({8, 10000, {}}, 0).error().code, error_code::invalid_argument);
  EXPECT_EQ(rope::make({8, 0.5, {}}, 4).error().code, error_code::invalid_argument);
  yarn stretch;
  stretch.factor = 0;
  EXPECT_EQ(rope::make({8, 10000, stretch}, 4).error().code, error_code::invalid_argument);
}

}  // namespace
}  // namespace ferry::deepseek
