// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The MoE layer of tests/data/moe: its weights follow from names.
#pragma once

#include <ferry/deepseek/moe_layer.hpp>
#include <ferry/deepseek/reference/moe.hpp>

#include "data/golden_file.hpp"
#include "deepseek/owned_matrix.hpp"

#include <string>
#include <vector>

namespace ferry::test {

struct golden_moe {
  static constexpr int hidden = 1024;
  static constexpr int width = 256;
  static constexpr int num_experts = 64;

  golden_moe() : file("moe/moe_sigmoid_top8_public.safetensors") {
    rule = {num_experts, 8, 8, 4, deepseek::scoring::sigmoid, true, true, 2.5F};
    auto const rows = file.tensor<std::int32_t>("token_rows");
    std::vector<float> const all = u8("x", 2048 * hidden, 2);
    for (std::int32_t row : rows.values) {
      x.insert(x.end(), all.begin() + std::ptrdiff_t{row} * hidden,
               all.begin() + std::ptrdiff_t{row + 1} * hidden);
    }
    tokens = static_cast<std::int64_t>(rows.size());
    router = u8("mlp.gate.weight", num_experts * hidden, 0x1p-4F);
    bias = deterministic_tensor(seed, "mlp.gate.e_score_correction_bias", num_experts,
                                value_form::u24, 0.125F);
    for (int e = 0; e <= num_experts; ++e) {
      std::string const name =
          e < num_experts ? "mlp.experts." + std::to_string(e) : "mlp.shared_experts";
      std::vector<float> both = u8(name + ".gate_proj.weight", width * hidden, 0x1p-4F);
      std::vector<float> const up = u8(name + ".up_proj.weight", width * hidden, 0x1p-4F);
      both.insert(both.end(), up.begin(), up.end());
      gate_and_up.push_back(std::move(both));
      down.push_back(u8(name + ".down_proj.weight", width * hidden, 0x1p-3F));
    }
  }

  std::vector<float> u8(std::string const& name, std::size_t count, float amplitude) const {
    return deterministic_tensor(seed, name, count, value_form::u8, amplitude);
  }
  /// An expert, or the shared ones for id num_experts.
  deepseek::mlp expert(int id, deepseek::linear_options const& options = {}) const {
    auto const e = static_cast<std::size_t>(id);
    return deepseek::mlp::make(dense<float const>(gate_and_up[e].data(), 2 * width, hidden),
                               dense<float const>(down[e].data(), hidden, width), options)
        .value();
  }
  deepseek::reference::mlp_weights weights(int id) const {
    auto const e = static_cast<std::size_t>(id);
    return {dense<float const>(gate_and_up[e].data(), width, hidden),
            dense<float const>(gate_and_up[e].data() + width * hidden, width, hidden),
            dense<float const>(down[e].data(), hidden, width)};
  }
  deepseek::gate make_gate() const {
    return deepseek::gate::make(rule, dense<float const>(router.data(), num_experts, hidden), bias)
        .value();
  }

  testing::golden_file file;
  std::string seed = "moe_sigmoid_top8_public";
  deepseek::gate_rule rule;
  std::int64_t tokens = 0;
  std::vector<float> x;
  std::vector<float> router;
  std::vector<float> bias;
  std::vector<std::vector<float>> gate_and_up;
  std::vector<std::vector<float>> down;
};

}  // namespace ferry::test
