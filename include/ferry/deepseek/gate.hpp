// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The gate: which experts a token goes to, and how much each counts.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>
#include <ferry/deepseek/linear.hpp>
#include <ferry/deepseek/model_config.hpp>

#include <cstdint>
#include <vector>

namespace ferry::deepseek {

/// How choices come from router logits.
struct gate_rule {
  int num_experts = 0;
  int topk = 0;
  int num_groups = 1;   ///< experts [g*E/G, (g+1)*E/G) are group g; 1: no groups
  int kept_groups = 1;  ///< groups whose experts may be chosen
  deepseek::scoring scoring = scoring::sigmoid;
  /// A group is worth its two best biased scores (noaux_tc) or its best score.
  bool group_is_two_best = true;
  bool normalise = true;  ///< weights are divided by their sum first
  float scale = 1;        ///< weights are multiplied with this last

  /// The rule of a published model. DeepSeek-V2's code normalises only for topk > 1 and does not
  /// scale what it has normalised; V3's always scales.
  static gate_rule of(model_config const& config);
};

/// Errors   invalid_argument a count outside its limits, groups that do not divide the experts,
///          fewer experts in the kept groups than topk
result<void> validate(gate_rule const& rule);

/// Chooses experts from logits, in f32.
/// Shapes   logits [n, experts]; bias [experts] or null: it is added to the scores for the choice
///          only; choices, weights [n, topk]
/// Order    choices stand by falling selection score, the lowest id first among equals; a NaN
///          counts as the lowest score, so that ids are always valid and differ
void choose(gate_rule const& rule, matrix<float const> logits, float const* bias,
            matrix<std::int32_t> choices, matrix<float> weights);

/// Router logits and the choice. Always f32, whatever the model computes in.
class gate {
 public:
  gate() = default;
  /// Shapes   weights [experts, hidden]; bias [experts] or empty
  /// Errors   those of `validate` and linear::pack; invalid_argument a shape does not fit the rule
  static result<gate> make(gate_rule const& rule, matrix<float const> weights,
                           std::vector<float> bias, row_calls calls = row_calls::probed);

  /// Shapes   x [n, hidden]; logits [n, experts] is scratch; choices, weights [n, topk]
  /// Errors   those of linear::apply
  result<void> apply(matrix<float const> x, matrix<float> logits, matrix<std::int32_t> choices,
                     matrix<float> weights) const;

  gate_rule const& rule() const { return rule_; }
  int hidden() const { return router_.in_features(); }

 private:
  gate_rule rule_;
  linear router_;
  std::vector<float> bias_;
};

}  // namespace ferry::deepseek
