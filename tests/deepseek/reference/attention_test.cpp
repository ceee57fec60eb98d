// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/reference/attention.hpp>

#include <gtest/gtest.h>

namespace ferry::deepseek::reference {
namespace {

/// One head of one column each: everything can be followed by hand.
struct one_head {
  one_head() {
    shape = {1, 1, 0, 1, 1, 2, 1, 0, 0.5F};
    weights = {dense<float const>(input, 6, 1), {}, {}, norm, dense<float const>(kv_b, 2, 1),
               dense<float const>(output, 1, 1)};
  }
  float input[6] = {2, 0, 0, 1, 0, 0};  // q [nope, rope, rope], kv, k [rope, rope]
  std::vector<float> norm{3};           // the latent of any x > 0 is 3
  float kv_b[2] = {1, 7};
  float output[1] = {1};
  attention_shape shape;
  attention_weights weights;
  rope_options turns{2, 10000, {}};
};

TEST(reference_attention, averages_values_by_the_softmax_of_scores) {
  one_head const a;
  // Latents are 3 for x > 0 and -3 for x < 0; values 7 times that; the query is 2 x.
  auto const y = attention(a.shape, a.weights, a.turns, {{1}, {-1}, {0.5}});
  EXPECT_NEAR(y[0][0], 21, 1e-9);
  double const for_first = std::exp(0.5 * -2 * 3);  // x = -1 over keys 3 and -3
  double const for_own = std::exp(0.5 * -2 * -3);
  EXPECT_NEAR(y[1][0], 21 * (for_first - for_own) / (for_first + for_own), 1e-9);
  double const up = std::exp(0.5 * 1 * 3);
  double const down = std::exp(0.5 * 1 * -3);
  EXPECT_NEAR(y[2][0], 21 * (2 * up - down) / (2 * up + down), 1e-9);
}

TEST(reference_attention, scores_turned_parts_by_distance_alone) {
  one_head a;
  a.input[0] = 0;
  a.input[1] = 1;
  a.input[4] = 1;
  // q and k turn alike, so a score over distance d is cos(d) times x x'.
  auto const y = attention(a.shape, a.weights, a.turns, {{1}, {-1}});
  double const far = std::exp(0.5 * -std::cos(1.0));
  double const own = std::exp(0.5);
  EXPECT_NEAR(y[1][0], 21 * (far - own) / (far + own), 1e-9);
}

}  // namespace
}  // namespace ferry::deepseek::reference
