// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/device_layers.hpp"

#include "base/fail.hpp"
#include "deepseek/layer_weights.hpp"

namespace ferry::deepseek {

linear_options device_layer_reader::options_for(bool fp8) const {
  return {.compute = options_.compute, .quantise_input = options_.quantise_activations && fp8};
}

result<device_array<float>> device_layer_reader::vector_of(std::string const& name,
                                                           std::int64_t size) const {
  FERRY_TRY(std::vector<float> const values, reader_.vector_of(name, size));
  return on_.copy_of<float>(values);
}

result<device_linear> device_layer_reader::product(weight_matrix const& m) const {
  return device_linear::make(on_, m.values, 1, m.columns, options_for(m.fp8));
}

/// Absorbed weights: their input is never rounded to fp8.
result<device_linear> device_layer_reader::heads(std::vector<float> const& weights,
                                                 std::int64_t in) const {
  return device_linear::make(on_, weights, config_.num_heads, in, options_for(false));
}

result<device_mlp> device_layer_reader::mlp_of(std::string const& prefix, int width) const {
  FERRY_TRY(mlp_matrices const m, read_mlp(reader_, config_, prefix, width));
  device_mlp made;
  FERRY_TRY(made.gate_and_up, product(m.gate_and_up));
  FERRY_TRY(made.down, product(m.down));
  return made;
}

result<device_mlp> device_layer_reader::experts_of(std::string const& prefix,
                                                   std::span<std::int32_t const> experts) const {
  int const width = config_.moe_intermediate_size;
  std::vector<float> gate_and_up;
  std::vector<float> down;
  bool fp8 = false;
  for (std::int32_t const e : experts) {
    FERRY_TRY(mlp_matrices const m,
              read_mlp(reader_, config_, prefix + ".experts." + std::to_string(e), width));
    if (!down.empty() && m.down.fp8 != fp8) {
      return fail(error_code::unsupported, "{}: some experts are fp8 and some are not", prefix);
    }
    fp8 = m.down.fp8;
    gate_and_up.insert(gate_and_up.end(), m.gate_and_up.values.begin(), m.gate_and_up.values.end());
    down.insert(down.end(), m.down.values.begin(), m.down.values.end());
  }
  int const groups = static_cast<int>(experts.size());
  device_mlp made;
  FERRY_TRY(made.gate_and_up,
            device_linear::make(on_, gate_and_up, groups, config_.hidden_size, options_for(fp8)));
  FERRY_TRY(made.down, device_linear::make(on_, down, groups, width, options_for(fp8)));
  return made;
}

result<device_attention> device_layer_reader::attention_of(std::string const& prefix) const {
  FERRY_TRY(attention_matrices const m, read_attention(reader_, config_, prefix));
  attention_shape const shape = attention_shape::of(config_);
  absorbed_matrices const absorbed = absorbed_matrices::of(shape, m.kv_b.view());
  device_attention made;
  FERRY_TRY(made.input, product(m.input));
  FERRY_TRY(made.q_norm, on_.copy_of<float>(m.q_norm));
  if (shape.q_lora_rank > 0) {
    FERRY_TRY(made.q_b, product(m.q_b));
  }
  FERRY_TRY(made.kv_norm, on_.copy_of<float>(m.kv_norm));
  FERRY_TRY(made.keys, heads(absorbed.keys, shape.nope));
  FERRY_TRY(made.values, heads(absorbed.values, shape.kv_lora_rank));
  FERRY_TRY(made.output, product(m.output));
  return made;
}

result<device_moe> device_layer_reader::moe_of(std::string const& prefix, int layer) const {
  device_moe made;
  made.layer = layer;
  FERRY_TRY(router_matrix const router, read_router(reader_, config_, prefix));
  FERRY_TRY(made.router, device_linear::make(on_, router.weights.values, 1, config_.hidden_size,
                                             {.compute = dtype::f32}));
  FERRY_TRY(made.bias, on_.copy_of<float>(router.bias));
  FERRY_TRY(made.experts, experts_of(prefix, own_.of_layer(layer)));
  if (config_.n_shared_experts > 0) {
    FERRY_TRY(made.shared, mlp_of(prefix + ".shared_experts",
                                  config_.n_shared_experts * config_.moe_intermediate_size));
  }
  return made;
}

result<device_layer> device_layer_reader::layer(int index) const {
  std::string const prefix = "model.layers." + std::to_string(index);
  device_layer l;
  FERRY_TRY(l.attention_norm, vector_of(prefix + ".input_layernorm.weight", config_.hidden_size));
  FERRY_TRY(l.attention, attention_of(prefix + ".self_attn"));
  FERRY_TRY(l.ffn_norm,
            vector_of(prefix + ".post_attention_layernorm.weight", config_.hidden_size));
  if (config_.is_moe_layer(index)) {
    FERRY_TRY(l.moe, moe_of(prefix + ".mlp", moe_layers_before(config_, index)));
  } else {
    FERRY_TRY(l.dense, mlp_of(prefix + ".mlp", config_.intermediate_size));
  }
  return l;
}

result<device_linear> device_layer_reader::head() const {
  FERRY_TRY(weight_matrix const m, read_head(reader_, config_));
  return product(m);
}

}  // namespace ferry::deepseek
