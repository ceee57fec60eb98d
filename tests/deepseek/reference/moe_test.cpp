// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/reference/moe.hpp>

#include "deepseek/golden_moe.hpp"

#include <gtest/gtest.h>

namespace ferry::deepseek::reference {
namespace {

TEST(reference_moe, gives_the_golden_outputs) {
  test::golden_moe const golden;
  moe_weights w;
  w.rule = golden.rule;
  w.router = dense<float const>(golden.router.data(), golden.num_experts, golden.hidden);
  w.bias.assign(golden.bias.begin(), golden.bias.end());
  for (int e = 0; e < golden.num_experts; ++e) w.experts.push_back(golden.weights(e));
  w.shared = {golden.weights(golden.num_experts)};
  auto const expected = golden.file.tensor<double>("out_f64_first8");
  auto const ids = golden.file.tensor<std::int32_t>("topk_ids");
  auto const weights = golden.file.tensor<float>("topk_weights_f32");
  for (std::ptrdiff_t t = 0; t < 8; ++t) {
    auto const first = golden.x.begin() + t * golden.hidden;
    std::vector<double> const x(first, first + golden.hidden);
    EXPECT_LT(
        test::distance(moe(w, x).data(), expected.values.data() + t * golden.hidden, golden.hidden),
        1e-9);
    chosen const c = choose(w.rule, product(w.router, x), w.bias);
    for (std::size_t k = 0; k < 8; ++k) {
      EXPECT_EQ(c.ids[k], ids[static_cast<std::size_t>(t) * 8 + k]);
      EXPECT_NEAR(c.weights[k], double{weights[static_cast<std::size_t>(t) * 8 + k]}, 1e-6);
    }
  }
}

TEST(reference_moe, gives_the_golden_outputs_of_shared_experts) {
  test::golden_moe const golden;
  auto const expected = golden.file.tensor<float>("shared_out_first32");
  for (std::ptrdiff_t t = 0; t < 32; ++t) {
    auto const first = golden.x.begin() + t * golden.hidden;
    auto const found = mlp(golden.weights(golden.num_experts), {first, first + golden.hidden});
    EXPECT_LT(
        test::distance(found.data(), expected.values.data() + t * golden.hidden, golden.hidden),
        1e-5);
  }
}

}  // namespace
}  // namespace ferry::deepseek::reference
