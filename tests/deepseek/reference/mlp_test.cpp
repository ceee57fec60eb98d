// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/reference/mlp.hpp>

#include <gtest/gtest.h>

namespace ferry::deepseek::reference {
namespace {

TEST(reference_mlp, gates_up_with_silu) {
  float const gate[] = {1, 0, 0, 1};
  float const up[] = {0, 1, 1, 1};
  float const down[] = {1, 10};
  mlp_weights const w{dense<float const>(gate, 2, 2), dense<float const>(up, 2, 2),
                      dense<float const>(down, 1, 2)};
  auto const silu = [](double x) { return x / (1 + std::exp(-x)); };
  EXPECT_NEAR(mlp(w, {2, -1})[0], silu(2) * -1 + 10 * silu(-1) * 1, 1e-12);
}

}  // namespace
}  // namespace ferry::deepseek::reference
