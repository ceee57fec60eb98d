// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Attention as it is defined, with keys and values of every head written out, in f64: plain and
/// slow. No cache, no absorbed weights.
#pragma once

#include <ferry/deepseek/attention.hpp>
#include <ferry/deepseek/reference/product.hpp>
#include <ferry/deepseek/reference/rms_norm.hpp>
#include <ferry/deepseek/reference/rope.hpp>

#include <cmath>
#include <cstddef>
#include <vector>

namespace ferry::deepseek::reference {

inline std::vector<double> part(std::vector<double> const& x, int first, int count) {
  return {x.begin() + first, x.begin() + first + count};
}

inline double product(std::vector<double> const& a, std::vector<double> const& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// What a token's row of the input product becomes.
struct attention_row {
  table q_nope, q_rope;  ///< per head
  table k_nope, v;       ///< per head
  std::vector<double> latent, k_rope;
};

inline attention_row project(attention_shape const& s, attention_weights const& w,
                             rope_options const& rope, std::vector<double> const& x, int position) {
  attention_row r;
  std::vector<double> const all = product(w.input, x);
  int const q_columns = s.q_lora_rank > 0 ? s.q_lora_rank : s.query_columns();
  std::vector<double> q = part(all, 0, q_columns);
  if (s.q_lora_rank > 0) q = product(w.q_b, rms_norm(q, w.q_norm, double{s.epsilon}));
  r.latent = rms_norm(part(all, q_columns, s.kv_lora_rank), w.kv_norm, double{s.epsilon});
  r.k_rope = turn(rope, part(all, q_columns + s.kv_lora_rank, s.rope), position);
  std::vector<double> const kv = product(w.kv_b, r.latent);
  for (int h = 0; h < s.num_heads; ++h) {
    int const head = h * (s.nope + s.rope);
    r.q_nope.push_back(part(q, head, s.nope));
    r.q_rope.push_back(turn(rope, part(q, head + s.nope, s.rope), position));
    r.k_nope.push_back(part(kv, h * (s.nope + s.v), s.nope));
    r.v.push_back(part(kv, h * (s.nope + s.v) + s.nope, s.v));
  }
  return r;
}

/// A whole sequence, positions 0, 1, ... : [n, hidden] to [n, hidden].
inline table attention(attention_shape const& s, attention_weights const& w,
                       rope_options const& rope, table const& x) {
  std::vector<attention_row> rows;
  table out;
  for (auto const& input : x) {
    rows.push_back(project(s, w, rope, input, static_cast<int>(rows.size())));
    attention_row const& own = rows.back();
    std::vector<double> values;
    for (std::size_t h = 0; h < own.v.size(); ++h) {
      std::vector<double> sum(own.v[h].size());
      double total = 0;
      for (attention_row const& past : rows) {
        double const score =
            product(own.q_nope[h], past.k_nope[h]) + product(own.q_rope[h], past.k_rope);
        double const weight = std::exp(score * double{s.softmax_scale});
        total += weight;
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * past.v[h][i];
      }
      for (double v : sum) values.push_back(v / total);
    }
    out.push_back(product(w.output, values));
  }
  return out;
}

}  // namespace ferry::deepseek::reference
