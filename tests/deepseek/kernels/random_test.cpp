// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/random.hpp>

#include <gtest/gtest.h>

namespace ferry::deepseek {
namespace {

TEST(random, draws_what_splitmix64_draws) {
  // The first outputs of the published generator for the state 1234567.
  std::uint64_t state = 1234567;
  std::uint64_t const published[] = {6457827717110365317u, 3203168211198807973u,
                                     9817491932198370423u};
  for (std::uint64_t expected : published) {
    state = next_state(state);
    EXPECT_EQ(mix(state), expected);
  }
}

TEST(random, draws_from_zero_up_to_one) {
  double sum = 0;
  std::uint64_t state = first_state(1, 2);
  for (int i = 0; i < 10000; ++i) {
    state = next_state(state);
    double const draw = draw_of(state);
    ASSERT_TRUE(draw >= 0 && draw < 1);
    sum += draw;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
  EXPECT_NE(first_state(1, 2), first_state(2, 1));
}

}  // namespace
}  // namespace ferry::deepseek
