// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A Mixture-of-Experts layer on one machine in f64: plain and slow.
#pragma once

#include <ferry/deepseek/reference/gate.hpp>
#include <ferry/deepseek/reference/mlp.hpp>

#include <cstddef>
#include <vector>

namespace ferry::deepseek::reference {

struct moe_weights {
  gate_rule rule;
  matrix<float const> router;  ///< [experts, hidden]
  std::vector<double> bias;    ///< [experts] or empty
  std::vector<mlp_weights> experts;
  std::vector<mlp_weights> shared;  ///< added unweighted
};

/// The sum of weighted experts(x) and shared(x) of one row.
inline std::vector<double> moe(moe_weights const& w, std::vector<double> const& x) {
  chosen const c = choose(w.rule, product(w.router, x), w.bias);
  std::vector<double> out(x.size());
  auto const add = [&](double weight, mlp_weights const& expert) {
    std::vector<double> const y = mlp(expert, x);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += weight * y[i];
  };
  for (std::size_t k = 0; k < c.ids.size(); ++k) {
    add(c.weights[k], w.experts[static_cast<std::size_t>(c.ids[k])]);
  }
  for (mlp_weights const& expert : w.shared) add(1, expert);
  return out;
}

}  // namespace ferry::deepseek::reference
