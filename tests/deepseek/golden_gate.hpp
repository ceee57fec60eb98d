// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The gates of tests/data/gate, with what they choose.
#pragma once

#include <ferry/deepseek/gate.hpp>

#include "data/golden_file.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ferry::test {

struct golden_gate {
  static constexpr std::int64_t hidden = 64;

  explicit golden_gate(std::string const& name) : file("gate/" + name + ".safetensors") {
    auto const number = [&](char const* key) { return std::stof(file.metadata(key)); };
    rule.num_experts = static_cast<int>(number("n_experts"));
    rule.topk = static_cast<int>(number("topk"));
    rule.num_groups = static_cast<int>(number("n_group"));
    rule.kept_groups = static_cast<int>(number("topk_group"));
    bool const sigmoid = file.metadata("score_func") == "sigmoid";
    rule.scoring = sigmoid ? deepseek::scoring::sigmoid : deepseek::scoring::softmax;
    rule.group_is_two_best = sigmoid;
    rule.normalise = file.metadata("norm_topk") == "True";
    rule.scale = number("route_scale");
    auto const x_there = file.tensor<float>("x");
    tokens = x_there.shape[0];
    x = x_there.values;
    router = file.tensor<float>("W").values;
    if (sigmoid) bias = file.tensor<float>("bias").values;
  }

  /// Compares the choices of the first `n` tokens, [n, topk] each.
  void expect_choices(std::int64_t n, std::int32_t const* found, float const* found_weights) const {
    auto const indices = file.tensor<std::int32_t>("indices");
    auto const weights = file.tensor<double>("weights_f64");
    auto const order = file.tensor<float>("margin_order");
    for (std::int64_t t = 0; t < n; ++t) {
      auto const first = static_cast<std::size_t>(t * rule.topk);
      auto const end = first + static_cast<std::size_t>(rule.topk);
      std::map<int, double> expected;
      std::map<int, double> got;
      for (std::size_t i = first; i < end; ++i) {
        expected[indices[i]] = weights[i];
        got[found[i]] = found_weights[i];
        if (order[static_cast<std::size_t>(t)] >= 1e-5F) {
          EXPECT_EQ(found[i], indices[i]) << t;
        }
      }
      ASSERT_EQ(got.size(), expected.size()) << t;
      for (auto const& [id, weight] : expected) {
        ASSERT_TRUE(got.contains(id)) << "token " << t << " expert " << id;
        EXPECT_NEAR(got[id], weight, 2e-6 * (1 + weight)) << t;
      }
    }
  }

  testing::golden_file file;
  deepseek::gate_rule rule;
  std::int64_t tokens = 0;
  std::vector<float> x;       ///< [tokens, hidden]
  std::vector<float> router;  ///< [num_experts, hidden]
  std::vector<float> bias;
};

}  // namespace ferry::test
