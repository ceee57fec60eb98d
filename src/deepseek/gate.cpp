// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/gate.hpp>

#include "base/fail.hpp"
#include "deepseek/row_loops.hpp"

namespace ferry::deepseek {
namespace {

/// What a thread needs per token; sized by the largest gate that it has met.
float* scratch_of_this_thread(gate_rule const& rule) {
  thread_local std::vector<float> scratch;
  auto const size =
      static_cast<std::size_t>(choose_experts::scratch_of(rule.num_experts, rule.num_groups));
  if (scratch.size() < size) scratch.resize(size);
  return scratch.data();
}

}  // namespace

gate_rule gate_rule::of(model_config const& config) {
  gate_rule rule;
  rule.num_experts = config.n_routed_experts;
  rule.topk = config.num_experts_per_tok;
  rule.scoring = config.scoring_func;
  rule.group_is_two_best = config.topk_method == topk_method::noaux_tc;
  if (config.topk_method != topk_method::greedy) {
    rule.num_groups = config.n_group;
    rule.kept_groups = config.topk_group;
  }
  bool const second = config.model_type == "deepseek_v2";
  rule.normalise = config.norm_topk_prob && !(second && rule.topk == 1);
  rule.scale = second && rule.normalise ? 1.0F : static_cast<float>(config.routed_scaling_factor);
  return rule;
}

result<void> validate(gate_rule const& rule) {
  if (rule.num_experts < 1 || rule.topk < 1 || rule.topk > rule.num_experts) {
    return fail(error_code::invalid_argument, "a gate chooses {} of {} experts", rule.topk,
                rule.num_experts);
  }
  if (rule.num_groups < 1 || rule.num_experts % rule.num_groups != 0 || rule.kept_groups < 1 ||
      rule.kept_groups > rule.num_groups) {
    return fail(error_code::invalid_argument, "a gate keeps {} of {} groups of {} experts",
                rule.kept_groups, rule.num_groups, rule.num_experts);
  }
  int const left = rule.num_experts / rule.num_groups * rule.kept_groups;
  if (rule.topk > left) {
    return fail(error_code::invalid_argument, "a gate chooses {} of the {} experts in its groups",
                rule.topk, left);
  }
  return {};
}

void choose(gate_rule const& rule, matrix<float const> logits, float const* bias,
            matrix<std::int32_t> choices, matrix<float> weights) {
  loops().choose({.logits = logits,
                  .bias = bias,
                  .choices = choices,
                  .weights = weights,
                  .num_groups = rule.num_groups,
                  .kept_groups = rule.kept_groups,
                  .softmax_scores = rule.scoring == scoring::softmax,
                  .group_is_two_best = rule.group_is_two_best,
                  .normalise = rule.normalise,
                  .scale = rule.scale,
                  .scratch = scratch_of_this_thread(rule)});
}

result<gate> gate::make(gate_rule const& rule, matrix<float const> weights, std::vector<float> bias,
                        row_calls calls) {
  FERRY_CHECK(validate(rule));
  if (weights.rows != rule.num_experts) {
    return fail(error_code::invalid_argument, "router weights of {} rows for {} experts",
                weights.rows, rule.num_experts);
  }
  if (!bias.empty() && bias.size() != static_cast<std::size_t>(rule.num_experts)) {
    return fail(error_code::invalid_argument, "a correction bias of {} values for {} experts",
                bias.size(), rule.num_experts);
  }
  gate g;
  g.rule_ = rule;
  FERRY_TRY(g.router_, linear::pack(weights, {.compute = dtype::f32, .calls = calls}));
  g.bias_ = std::move(bias);
  return g;
}

result<void> gate::apply(matrix<float const> x, matrix<float> logits, matrix<std::int32_t> choices,
                         matrix<float> weights) const {
  if (choices.rows != x.rows || weights.rows != x.rows || choices.columns != rule_.topk ||
      weights.columns != rule_.topk) {
    return fail(error_code::invalid_argument,
                "a gate of top {} got {} tokens, choices of {} by {} and weights of {} by {}",
                rule_.topk, x.rows, choices.rows, choices.columns, weights.rows, weights.columns);
  }
  FERRY_CHECK(router_.apply(x, logits));
  choose(rule_, {logits.data, logits.rows, logits.columns, logits.row_stride},
         bias_.empty() ? nullptr : bias_.data(), choices, weights);
  return {};
}

}  // namespace ferry::deepseek
