// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/layer_weights.hpp"

#include "base/fail.hpp"

#include <algorithm>

namespace ferry::deepseek {

absorbed_matrices absorbed_matrices::of(attention_shape const& shape, matrix<float const> kv_b) {
  absorbed_matrices m;
  for (int h = 0; h < shape.num_heads; ++h) {
    std::int64_t const first = std::int64_t{h} * (shape.nope + shape.v);
    for (int j = 0; j < shape.kv_lora_rank; ++j) {
      for (int i = 0; i < shape.nope; ++i) m.keys.push_back(kv_b[first + i][j]);
    }
    for (int i = 0; i < shape.v; ++i) {
      float const* const row = kv_b[first + shape.nope + i];
      m.values.insert(m.values.end(), row, row + shape.kv_lora_rank);
    }
  }
  return m;
}

result<mlp_matrices> read_mlp(weight_reader const& reader, model_config const& config,
                              std::string const& prefix, int width) {
  mlp_matrices m;
  FERRY_TRY(m.gate_and_up,
            reader.stack({{prefix + ".gate_proj", width}, {prefix + ".up_proj", width}},
                         config.hidden_size));
  FERRY_TRY(m.down, reader.matrix_of(prefix + ".down_proj", config.hidden_size, width));
  if (m.gate_and_up.fp8 != m.down.fp8) {
    return fail(error_code::unsupported, "{}: gate_proj is fp8 and down_proj is not, or vice versa",
                prefix);
  }
  return m;
}

result<attention_matrices> read_attention(weight_reader const& reader, model_config const& config,
                                          std::string const& prefix) {
  attention_shape const s = attention_shape::of(config);
  bool const lora = s.q_lora_rank > 0;
  attention_matrices m;
  FERRY_TRY(m.input, reader.stack({{prefix + (lora ? ".q_a_proj" : ".q_proj"),
                                    lora ? s.q_lora_rank : s.query_columns()},
                                   {prefix + ".kv_a_proj_with_mqa", s.cached_columns()}},
                                  s.hidden));
  if (lora) {
    FERRY_TRY(m.q_norm, reader.vector_of(prefix + ".q_a_layernorm.weight", s.q_lora_rank));
    FERRY_TRY(m.q_b, reader.matrix_of(prefix + ".q_b_proj", s.query_columns(), s.q_lora_rank));
  }
  FERRY_TRY(m.kv_norm, reader.vector_of(prefix + ".kv_a_layernorm.weight", s.kv_lora_rank));
  FERRY_TRY(m.kv_b, reader.matrix_of(prefix + ".kv_b_proj",
                                     std::int64_t{s.num_heads} * (s.nope + s.v), s.kv_lora_rank));
  FERRY_TRY(m.output,
            reader.matrix_of(prefix + ".o_proj", s.hidden, std::int64_t{s.num_heads} * s.v));
  if (m.output.fp8 != m.input.fp8 || (lora && m.q_b.fp8 != m.input.fp8)) {
    return fail(error_code::unsupported, "{}: some projections are fp8 and some are not", prefix);
  }
  return m;
}

result<router_matrix> read_router(weight_reader const& reader, model_config const& config,
                                  std::string const& prefix) {
  router_matrix m;
  FERRY_TRY(m.weights,
            reader.matrix_of(prefix + ".gate", config.n_routed_experts, config.hidden_size));
  if (config.topk_method == topk_method::noaux_tc) {
    FERRY_TRY(m.bias,
              reader.vector_of(prefix + ".gate.e_score_correction_bias", config.n_routed_experts));
  }
  return m;
}

result<weight_matrix> read_head(weight_reader const& reader, model_config const& config) {
  return reader.matrix_of(config.tie_word_embeddings ? "model.embed_tokens" : "lm_head",
                          config.vocab_size, config.hidden_size);
}

}  // namespace ferry::deepseek
