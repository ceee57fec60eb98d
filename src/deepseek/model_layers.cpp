// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/model_layers.hpp"

#include "base/fail.hpp"

namespace ferry::deepseek {

linear_options layer_reader::products(weight_matrix const& m) const {
  return {.compute = options_.compute,
          .quantise_input = options_.quantise_activations && m.fp8,
          .calls = options_.calls};
}

result<mlp> layer_reader::mlp_of(std::string const& prefix, int width) const {
  FERRY_TRY(weight_matrix const gate_and_up,
            reader_.stack({{prefix + ".gate_proj", width}, {prefix + ".up_proj", width}},
                          config_.hidden_size));
  FERRY_TRY(weight_matrix const down,
            reader_.matrix_of(prefix + ".down_proj", config_.hidden_size, width));
  if (gate_and_up.fp8 != down.fp8) {
    return fail(error_code::unsupported, "{}: gate_proj is fp8 and down_proj is not, or vice versa",
                prefix);
  }
  return mlp::make(gate_and_up.view(), down.view(), products(down));
}

result<attention> layer_reader::attention_of(std::string const& prefix) const {
  attention_shape const s = attention_shape::of(config_);
  bool const lora = s.q_lora_rank > 0;
  FERRY_TRY(weight_matrix const input,
            reader_.stack({{prefix + (lora ? ".q_a_proj" : ".q_proj"),
                            lora ? s.q_lora_rank : s.query_columns()},
                           {prefix + ".kv_a_proj_with_mqa", s.cached_columns()}},
                          s.hidden));
  std::vector<float> q_norm;
  weight_matrix q_b;
  if (lora) {
    FERRY_TRY(q_norm, reader_.vector_of(prefix + ".q_a_layernorm.weight", s.q_lora_rank));
    FERRY_TRY(q_b, reader_.matrix_of(prefix + ".q_b_proj", s.query_columns(), s.q_lora_rank));
  }
  FERRY_TRY(std::vector<float> const kv_norm,
            reader_.vector_of(prefix + ".kv_a_layernorm.weight", s.kv_lora_rank));
  FERRY_TRY(weight_matrix const kv_b,
            reader_.matrix_of(prefix + ".kv_b_proj", std::int64_t{s.num_heads} * (s.nope + s.v),
                              s.kv_lora_rank));
  FERRY_TRY(weight_matrix const output,
            reader_.matrix_of(prefix + ".o_proj", s.hidden, std::int64_t{s.num_heads} * s.v));
  if (output.fp8 != input.fp8 || (lora && q_b.fp8 != input.fp8)) {
    return fail(error_code::unsupported, "{}: some projections are fp8 and some are not", prefix);
  }
  return attention::make(s, {input.view(), q_norm, q_b.view(), kv_norm, kv_b.view(), output.view()},
                         products(input));
}

result<moe_layer> layer_reader::moe_of(std::string const& prefix) const {
  FERRY_TRY(weight_matrix const router,
            reader_.matrix_of(prefix + ".gate", config_.n_routed_experts, config_.hidden_size));
  std::vector<float> bias;
  if (config_.topk_method == topk_method::noaux_tc) {
    FERRY_TRY(bias, reader_.vector_of(prefix + ".gate.e_score_correction_bias",
                                      config_.n_routed_experts));
  }
  FERRY_TRY(gate router_gate,
            gate::make(gate_rule::of(config_), router.view(), std::move(bias), options_.calls));
  std::vector<mlp> local;
  for (int e = own_.first; e < own_.end; ++e) {
    FERRY_TRY(mlp expert,
              mlp_of(prefix + ".experts." + std::to_string(e), config_.moe_intermediate_size));
    local.push_back(std::move(expert));
  }
  FERRY_TRY(experts own, experts::make(std::move(local), config_.hidden_size, options_.wire));
  std::optional<mlp> shared;
  if (config_.n_shared_experts > 0) {
    FERRY_TRY(shared, mlp_of(prefix + ".shared_experts",
                             config_.n_shared_experts * config_.moe_intermediate_size));
  }
  return moe_layer::make(std::move(router_gate), std::move(own), std::move(shared));
}

result<model_layer> layer_reader::layer(int index) const {
  std::string const prefix = "model.layers." + std::to_string(index);
  model_layer l;
  FERRY_TRY(l.attention_norm,
            reader_.vector_of(prefix + ".input_layernorm.weight", config_.hidden_size));
  FERRY_TRY(l.attention, attention_of(prefix + ".self_attn"));
  FERRY_TRY(l.ffn_norm,
            reader_.vector_of(prefix + ".post_attention_layernorm.weight", config_.hidden_size));
  if (config_.is_moe_layer(index)) {
    FERRY_TRY(l.moe, moe_of(prefix + ".mlp"));
  } else {
    FERRY_TRY(l.dense, mlp_of(prefix + ".mlp", config_.intermediate_size));
  }
  return l;
}

result<linear> layer_reader::head() const {
  FERRY_TRY(weight_matrix const m,
            reader_.matrix_of(config_.tie_word_embeddings ? "model.embed_tokens" : "lm_head",
                              config_.vocab_size, config_.hidden_size));
  return linear::pack(m.view(), products(m));
}

}  // namespace ferry::deepseek
