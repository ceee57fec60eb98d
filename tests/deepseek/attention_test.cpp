// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/attention.hpp>

#include <ferry/deepseek/reference/attention.hpp>

#include "deepseek/owned_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::deepseek {
namespace {

using test::owned_matrix;

struct small_attention {
  explicit small_attention(int q_lora, linear_options const& options = {})
      : input("input", (q_lora ? q_lora : 3 * 14) + 24 + 6, 40, 0.5F),
        q_norm("q_norm", 1, q_lora ? q_lora : 1, 2),
        q_b("q_b", 3 * 14, q_lora ? q_lora : 1, 0.5F),
        kv_norm("kv_norm", 1, 24, 2),
        kv_b("kv_b", 3 * (8 + 10), 24, 0.5F),
        output("output", 40, 30, 0.5F) {
    shape = {40, 3, q_lora, 24, 8, 6, 10, 1e-6F, 0.3F};
    weights = {input.view(), {}, {}, kv_norm.values, kv_b.view(), output.view()};
    if (q_lora > 0) {
      weights.q_norm = q_norm.values;
      weights.q_b = q_b.view();
    }
    product = attention::make(shape, weights, options).value();
    turning = rope::make(turns, 80).value();
    scratch.resize(product.scratch_size(80));
  }
  latent_cache cache(int sequences) const {
    return latent_cache::make(sequences, 80, shape.cached_columns()).value();
  }
  /// Positions first .. first + n of one sequence.
  owned_matrix run(latent_cache& cache, owned_matrix const& x, int sequence, int first, int n) {
    std::vector<std::int32_t> const sequences(static_cast<std::size_t>(n), sequence);
    std::vector<std::int32_t> positions;
    for (int i = 0; i < n; ++i) positions.push_back(first + i);
    owned_matrix out(n, 40);
    product.apply({x.slice(first, n), sequences, positions}, turning, cache, out.view(), scratch)
        .value();
    return out;
  }

  owned_matrix input, q_norm, q_b, kv_norm, kv_b, output;
  attention_shape shape;
  attention_weights weights;
  rope_options turns{6, 10000, {}};
  attention product;
  rope turning;
  std::vector<float> scratch;
};

class attention_with : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(q_lora, attention_with, testing::Values(0, 20));

TEST_P(attention_with, follows_the_definition_without_absorbing_or_caching) {
  small_attention a(GetParam());
  owned_matrix const x("x", 70, 40);
  auto cache = a.cache(1);
  owned_matrix const found = a.run(cache, x, 0, 0, 70);
  auto const expected =
      reference::attention(a.shape, a.weights, a.turns, reference::to_table(x.view()));
  for (std::int64_t row = 0; row < 70; ++row) {
    EXPECT_LT(test::distance(found[row], expected[static_cast<std::size_t>(row)].data(), 40), 3e-5)
        << row;
  }
}

TEST_P(attention_with, gives_the_same_bits_for_any_chunks) {
  for (row_calls calls : {row_calls::probed, row_calls::sixteen}) {
    small_attention a(GetParam(), {.calls = calls});
    owned_matrix const x("x", 70, 40);
    auto whole_cache = a.cache(1);
    owned_matrix const whole = a.run(whole_cache, x, 0, 0, 70);
    for (int chunk : {1, 3, 16, 33, 64}) {
      auto cache = a.cache(2);
      for (int first = 0; first < 70; first += chunk) {
        int const n = std::min(chunk, 70 - first);
        owned_matrix const part = a.run(cache, x, 1, first, n);
        ASSERT_TRUE(test::same_bits(part[0], whole[first], std::int64_t{n} * 40))
            << "chunk " << chunk << " from " << first;
      }
      EXPECT_TRUE(test::same_bits(cache.row(1, 0), whole_cache.row(0, 0), 70 * 30));
    }
  }
}

TEST_P(attention_with, keeps_sequences_of_one_batch_apart) {
  small_attention a(GetParam());
  owned_matrix const first("first", 9, 40);
  owned_matrix const second("second", 9, 40);
  auto cache = a.cache(3);
  owned_matrix const alone_first = a.run(cache, first, 0, 0, 9);
  owned_matrix const alone_second = a.run(cache, second, 1, 0, 9);
  owned_matrix both(18, 40);
  std::vector<std::int32_t> sequences;
  std::vector<std::int32_t> positions;
  for (std::int64_t i = 0; i < 9; ++i) {
    std::copy_n(first[i], 40, both.view()[2 * i]);
    std::copy_n(second[i], 40, both.view()[2 * i + 1]);
    sequences.insert(sequences.end(), {2, 0});
    positions.insert(positions.end(), 2, static_cast<std::int32_t>(i));
  }
  owned_matrix out(18, 40);
  ASSERT_TRUE(a.product.apply({both.read(), sequences, positions}, a.turning, cache, out.view(),
                              a.scratch));
  for (std::int64_t i = 0; i < 9; ++i) {
    EXPECT_TRUE(test::same_bits(out[2 * i], alone_first[i], 40)) << i;
    EXPECT_TRUE(test::same_bits(out[2 * i + 1], alone_second[i], 40)) << i;
  }
}

TEST(attention, caches_the_normalised_latent_and_the_turned_key) {
  small_attention a(20);
  owned_matrix const x("x", 5, 40);
  auto cache = a.cache(1);
  a.run(cache, x, 0, 0, 5);
  auto const row =
      reference::project(a.shape, a.weights, a.turns, reference::to_table(x.view())[4], 4);
  EXPECT_LT(test::distance(cache.row(0, 4), row.latent.data(), 24), 1e-5);
  EXPECT_LT(test::distance(cache.row(0, 4) + 24, row.k_rope.data(), 6), 1e-5);
}

TEST(attention, refuses_positions_and_slots_outside_the_cache) {
  small_attention a(0);
  owned_matrix const x("x", 1, 40);
  owned_matrix out(1, 40);
  auto cache = a.cache(2);
  auto const refusal = [&](std::int32_t sequence, std::int32_t position) {
    auto const r = a.product.apply({x.read(), {&sequence, 1}, {&position, 1}}, a.turning, cache,
                                   out.view(), a.scratch);
    return r ? std::string() : r.error().message;
  };
  EXPECT_EQ(refusal(1, 79), "");
  EXPECT_THAT(refusal(1, 80), testing::HasSubstr("position 80 of sequence 1"));
  EXPECT_THAT(refusal(1, -1), testing::HasSubstr("position -1"));
  EXPECT_THAT(refusal(2, 0), testing::HasSubstr("2 sequences"));
  EXPECT_THAT(refusal(-1, 0), testing::HasSubstr("sequence -1"));
}

TEST(attention, refuses_weights_that_do_not_fit_the_shape) {
  small_attention const a(20);
  attention_weights w = a.weights;
  w.output = a.output.slice(0, 39);
  EXPECT_THAT(attention::make(a.shape, w).error().message, testing::HasSubstr("output 39 by 30"));
  w = a.weights;
  w.q_norm = {};
  EXPECT_FALSE(attention::make(a.shape, w));
  EXPECT_FALSE(latent_cache::make(0, 1, 1));
}

}  // namespace
}  // namespace ferry::deepseek
