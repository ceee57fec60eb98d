// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The weights of a model's layers in f32, as a checkpoint has them.
#pragma once

#include <ferry/deepseek/attention.hpp>
#include <ferry/deepseek/model_config.hpp>

#include "deepseek/weight_reader.hpp"

#include <string>
#include <vector>

namespace ferry::deepseek {

struct mlp_matrices {
  weight_matrix gate_and_up;
  weight_matrix down;
};

struct attention_matrices {
  weight_matrix input;  ///< as attention_weights
  std::vector<float> q_norm;
  weight_matrix q_b;
  std::vector<float> kv_norm;
  weight_matrix kv_b;
  weight_matrix output;

  attention_weights view() const {
    return {input.view(), q_norm, q_b.view(), kv_norm, kv_b.view(), output.view()};
  }
};

struct router_matrix {
  weight_matrix weights;
  std::vector<float> bias;  ///< empty: none
};

/// kv_b_proj as absorbed decode uses it, head by head.
struct absorbed_matrices {
  std::vector<float> keys;    ///< [heads, kv_lora, nope]
  std::vector<float> values;  ///< [heads, v, kv_lora]

  static absorbed_matrices of(attention_shape const& shape, matrix<float const> kv_b);
};

/// Errors   of all: those of weight_reader; unsupported matrices of one block of which some are fp8
///          and some are not
result<mlp_matrices> read_mlp(weight_reader const& reader, model_config const& config,
                              std::string const& prefix, int width);
result<attention_matrices> read_attention(weight_reader const& reader, model_config const& config,
                                          std::string const& prefix);
result<router_matrix> read_router(weight_reader const& reader, model_config const& config,
                                  std::string const& prefix);
/// lm_head, or the embedding where they are tied.
result<weight_matrix> read_head(weight_reader const& reader, model_config const& config);

}  // namespace ferry::deepseek
