// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A gate's choice of experts.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/deepseek/kernels/find.hpp>
#include <ferry/deepseek/kernels/softmax.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// Scores, keys and choice of each token: gate_rule (gate.hpp) says what the fields mean, and
/// validates them.
/// Shapes   logits [tokens, num_experts]; bias [num_experts] or null, for the choice only
///          choices, weights [tokens, topk], by falling key, the lowest id first among equals
///          scratch `scratch_stride` floats a strip, at least scratch_of()
/// Order    a key that is NaN counts as minus infinity
struct choose_experts {
  matrix<float const> logits;
  float const* bias = nullptr;
  matrix<std::int32_t> choices;
  matrix<float> weights;
  int num_groups = 1;
  int kept_groups = 1;
  bool softmax_scores = false;  ///< else each logit's sigmoid
  bool group_is_two_best = false;
  bool normalise = false;
  float scale = 1;
  float* scratch = nullptr;
  std::int64_t scratch_stride = 0;

  static constexpr std::int64_t scratch_of(int num_experts, int num_groups) {
    return 2 * std::int64_t{num_experts} + num_groups;
  }

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    std::int64_t const experts = logits.columns;
    float* const scores = scratch + s.index() * scratch_stride;
    float* const keys = scores + experts;
    for (std::int64_t token = s.index(); token < logits.rows; token += s.count()) {
      score(s, logits[token], scores);
      s.for_each(experts, [&](std::int64_t i) {
        keys[i] = as_key(bias != nullptr ? scores[i] + bias[i] : scores[i]);
      });
      s.sync();
      if (kept_groups < num_groups) keep_groups(s, keys, keys + experts);
      for (std::int64_t k = 0; k < choices.columns; ++k) {
        std::int64_t const best = find_largest(s, keys, experts);
        s.sync();  // all lanes have looked
        if (s.leader()) {
          choices[token][k] = static_cast<std::int32_t>(best);
          keys[best] = taken;
        }
        s.sync();
      }
      weigh(s, scores, choices[token], weights[token]);
      s.sync();  // the scratch is written anew for the next token
    }
  }

 private:
  /// A key that is none: NaN is never larger, and keys themselves are no NaN.
  static constexpr float taken = __builtin_nanf("");

  FERRY_FN static float as_key(float x) { return is_nan(x) ? lowest : x; }

  template <strip Strip>
  FERRY_FN void score(Strip const& s, float const* logit, float* scores) const {
    if (softmax_scores) {
      s.for_each(logits.columns, [&](std::int64_t i) { scores[i] = logit[i]; });
      softmax(s, scores, logits.columns);
    } else {
      s.for_each(logits.columns,
                 [&](std::int64_t i) { scores[i] = 1.0F / (1.0F + exponential(-logit[i])); });
    }
  }

  /// Takes the keys of all groups but the best out of the choice.
  template <strip Strip>
  FERRY_FN void keep_groups(Strip const& s, float* keys, float* worths) const {
    std::int64_t const size = logits.columns / num_groups;
    for (int g = 0; g < num_groups; ++g) {
      float const one = worth(s, keys + g * size, size);
      if (s.leader()) worths[g] = one;
    }
    s.sync();
    for (int k = 0; k < kept_groups; ++k) {
      std::int64_t const best = find_largest(s, worths, num_groups);
      s.sync();
      if (s.leader()) worths[best] = taken;
      s.sync();
    }
    for (int g = 0; g < num_groups; ++g) {
      if (is_nan(worths[g])) continue;
      s.for_each(size, [&](std::int64_t i) { keys[g * size + i] = taken; });
    }
    s.sync();
  }

  template <strip Strip>
  FERRY_FN float worth(Strip const& s, float* keys, std::int64_t size) const {
    if (!group_is_two_best || size == 1) return largest_of(s, keys, size);
    std::int64_t const best = find_largest(s, keys, size);
    float const first = keys[best];
    s.sync();
    if (s.leader()) keys[best] = taken;
    s.sync();
    float const second = largest_of(s, keys, size);
    s.sync();
    if (s.leader()) keys[best] = first;
    s.sync();
    return as_key(first + second);
  }

  template <strip Strip>
  FERRY_FN void weigh(Strip const& s, float const* scores, std::int32_t const* chosen,
                      float* weight) const {
    float sum = 0;
    for (std::int64_t k = 0; k < choices.columns; ++k) sum += scores[chosen[k]];
    // Scores of 0 throughout give weights of 0 instead of NaN.
    float const divisor = normalise ? sum + 1e-20F : 1.0F;
    s.for_each(choices.columns,
               [&](std::int64_t k) { weight[k] = scores[chosen[k]] / divisor * scale; });
  }
};

}  // namespace ferry::deepseek
