// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/gate.hpp>

#include "base/fail.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ferry::deepseek {
namespace {

constexpr float lowest = -std::numeric_limits<float>::infinity();

/// What a thread needs per token; sized by the largest gate that it has met.
struct workspace {
  std::vector<float> scores;  // [experts]
  std::vector<float> keys;    // [experts], what the choice looks at
  std::vector<float> groups;  // [groups]
  std::vector<std::int32_t> candidates;

  void fit(gate_rule const& rule) {
    auto const experts = static_cast<std::size_t>(rule.num_experts);
    if (scores.size() < experts) {
      scores.resize(experts);
      keys.resize(experts);
      groups.resize(experts);
      candidates.resize(experts);
    }
  }
};

void score(gate_rule const& rule, float const* logits, float* scores) {
  int const n = rule.num_experts;
  if (rule.scoring == scoring::sigmoid) {
    for (int i = 0; i < n; ++i) scores[i] = 1.0F / (1.0F + std::exp(-logits[i]));
    return;
  }
  float largest = lowest;
  for (int i = 0; i < n; ++i) largest = std::max(largest, logits[i]);
  float sum = 0;
  for (int i = 0; i < n; ++i) {
    scores[i] = std::exp(logits[i] - largest);
    sum += scores[i];
  }
  for (int i = 0; i < n; ++i) scores[i] /= sum;
}

/// Moves the `count` ids with the largest keys to the front, by falling key. `ids` come in rising
/// order and the rest keeps it, so the first of equals is always the lowest.
void bring_best_to_front(std::int32_t* ids, int size, int count, float const* keys) {
  for (int place = 0; place < count; ++place) {
    int best = place;
    for (int i = place + 1; i < size; ++i) {
      if (keys[ids[i]] > keys[ids[best]]) best = i;
    }
    std::rotate(ids + place, ids + best, ids + best + 1);
  }
}

float group_worth(gate_rule const& rule, float const* keys, int size) {
  float first = lowest;
  float second = lowest;
  for (int i = 0; i < size; ++i) {
    if (keys[i] > first) {
      second = first;
      first = keys[i];
    } else if (keys[i] > second) {
      second = keys[i];
    }
  }
  return rule.group_is_two_best && size > 1 ? first + second : first;
}

/// Writes the ids that may be chosen to `ids`, in rising order; returns how many.
int candidates_of(gate_rule const& rule, workspace& w, std::int32_t* ids) {
  int const size = rule.num_experts / rule.num_groups;
  int groups = rule.num_groups;
  for (int g = 0; g < groups; ++g) ids[g] = g;
  if (rule.kept_groups < groups) {
    for (int g = 0; g < groups; ++g) {
      w.groups[static_cast<std::size_t>(g)] = group_worth(rule, w.keys.data() + g * size, size);
    }
    bring_best_to_front(ids, groups, rule.kept_groups, w.groups.data());
    groups = rule.kept_groups;
    std::sort(ids, ids + groups);
  }
  // From the back: group g's ids are written at or behind the place that names g.
  for (int i = groups - 1; i >= 0; --i) {
    std::int32_t const first = ids[i] * size;
    for (int j = size - 1; j >= 0; --j) ids[i * size + j] = first + j;
  }
  return groups * size;
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
  thread_local workspace w;
  w.fit(rule);
  for (std::int64_t token = 0; token < logits.rows; ++token) {
    score(rule, logits[token], w.scores.data());
    for (int i = 0; i < rule.num_experts; ++i) {
      auto const e = static_cast<std::size_t>(i);
      float const key = bias != nullptr ? w.scores[e] + bias[i] : w.scores[e];
      w.keys[e] = std::isnan(key) ? lowest : key;
    }
    std::int32_t* ids = w.candidates.data();
    int const size = candidates_of(rule, w, ids);
    bring_best_to_front(ids, size, rule.topk, w.keys.data());
    float sum = 0;
    for (int k = 0; k < rule.topk; ++k) sum += w.scores[static_cast<std::size_t>(ids[k])];
    // Scores of 0 throughout give weights of 0 instead of NaN.
    float const divisor = rule.normalise ? sum + 1e-20F : 1.0F;
    for (int k = 0; k < rule.topk; ++k) {
      choices[token][k] = ids[k];
      weights[token][k] = w.scores[static_cast<std::size_t>(ids[k])] / divisor * rule.scale;
    }
  }
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
