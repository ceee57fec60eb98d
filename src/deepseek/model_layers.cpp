// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/model_layers.hpp"

#include "base/fail.hpp"
#include "deepseek/layer_weights.hpp"

namespace ferry::deepseek {

linear_options layer_reader::products(weight_matrix const& m, weight_pool* pool) const {
  return {.compute = options_.compute,
          .quantise_input = options_.quantise_activations && m.fp8,
          .calls = options_.calls,
          .pool = pool};
}

result<mlp> layer_reader::mlp_of(std::string const& prefix, int width, weight_pool* pool) const {
  FERRY_TRY(mlp_matrices const m, read_mlp(reader_, config_, prefix, width));
  return mlp::make(m.gate_and_up.view(), m.down.view(), products(m.down, pool));
}

result<attention> layer_reader::attention_of(std::string const& prefix) const {
  FERRY_TRY(attention_matrices const m, read_attention(reader_, config_, prefix));
  return attention::make(attention_shape::of(config_), m.view(), products(m.input, &common_));
}

int moe_layers_before(model_config const& config, int index) {
  int n = 0;
  for (int i = 0; i < index; ++i) n += config.is_moe_layer(i);
  return n;
}

result<placement> experts_of(model_config const& config, model_options const& options, int ranks) {
  int const layers = moe_layers_before(config, config.num_layers);
  int const experts = config.n_routed_experts;
  if (!options.experts_at) return contiguous_placement(layers, experts, ranks);
  placement where = *options.experts_at;
  FERRY_CHECK(validate(where));
  if (where.num_experts != experts || where.num_ranks != ranks ||
      (where.num_layers != layers && where.num_layers != config.num_layers)) {
    return fail(error_code::invalid_argument,
                "a placement of {} layers, {} experts and {} ranks for a model of {} layers, of "
                "which {} have experts, {} experts and {} ranks",
                where.num_layers, where.num_experts, where.num_ranks, config.num_layers, layers,
                experts, ranks);
  }
  if (where.num_layers == layers) return where;
  // Of all layers: those without experts say nothing.
  placement of_moe = where;
  of_moe.num_layers = layers;
  of_moe.experts.clear();
  for (int i = 0; i < config.num_layers; ++i) {
    if (!config.is_moe_layer(i)) continue;
    auto const slots = where.layer(i);
    of_moe.experts.insert(of_moe.experts.end(), slots.begin(), slots.end());
  }
  return of_moe;
}

result<moe_layer> layer_reader::moe_of(std::string const& prefix, int layer) const {
  FERRY_TRY(router_matrix router, read_router(reader_, config_, prefix));
  FERRY_TRY(gate router_gate, gate::make(gate_rule::of(config_), router.weights.view(),
                                         std::move(router.bias), options_.calls));
  std::vector<mlp> local;
  for (std::int32_t const e : own_.of_layer(layer)) {
    FERRY_TRY(mlp expert, mlp_of(prefix + ".experts." + std::to_string(e),
                                 config_.moe_intermediate_size, nullptr));
    local.push_back(std::move(expert));
  }
  FERRY_TRY(experts own, experts::make(std::move(local), config_.hidden_size, options_.wire));
  std::optional<mlp> shared;
  if (config_.n_shared_experts > 0) {
    FERRY_TRY(shared, mlp_of(prefix + ".shared_experts",
                             config_.n_shared_experts * config_.moe_intermediate_size, &common_));
  }
  return moe_layer::make(std::move(router_gate), std::move(own), std::move(shared), layer);
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
    FERRY_TRY(l.moe, moe_of(prefix + ".mlp", moe_layers_before(config_, index)));
  } else {
    FERRY_TRY(l.dense, mlp_of(prefix + ".mlp", config_.intermediate_size, &common_));
  }
  return l;
}

result<linear> layer_reader::head() const {
  FERRY_TRY(weight_matrix const m, read_head(reader_, config_));
  return linear::pack(m.view(), products(m, &common_));
}

}  // namespace ferry::deepseek
