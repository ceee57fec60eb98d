// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The gate in f64, by sorting: plain and slow.
#pragma once

#include <ferry/deepseek/gate.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <set>
#include <vector>

namespace ferry::deepseek::reference {

struct chosen {
  std::vector<int> ids;
  std::vector<double> weights;
};

/// Indices of the `count` largest values, by falling value, the lowest index first among equals.
inline std::vector<int> largest(std::vector<double> const& values, int count) {
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
  });
  order.resize(static_cast<std::size_t>(count));
  return order;
}

inline std::vector<double> scores(gate_rule const& rule, std::vector<double> const& logits) {
  std::vector<double> s;
  double sum = 0;
  for (double x : logits) {
    s.push_back(rule.scoring == scoring::sigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x));
    sum += s.back();
  }
  for (double& x : s) x /= rule.scoring == scoring::softmax ? sum : 1;
  return s;
}

/// One token's choice. `bias` is empty or has one value per expert.
inline chosen choose(gate_rule const& rule, std::vector<double> const& logits,
                     std::vector<double> const& bias) {
  std::vector<double> const s = scores(rule, logits);
  std::vector<double> keys = s;
  for (std::size_t i = 0; i < bias.size(); ++i) keys[i] += bias[i];
  auto const size = s.size() / static_cast<std::size_t>(rule.num_groups);
  std::vector<double> worth;
  for (std::size_t g = 0; g * size < s.size(); ++g) {
    std::vector<double> group(keys.begin() + static_cast<std::ptrdiff_t>(g * size),
                              keys.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
    std::sort(group.begin(), group.end(), std::greater<>());
    worth.push_back(group[0] + (rule.group_is_two_best && size > 1 ? group[1] : 0));
  }
  auto const kept = largest(worth, rule.kept_groups);
  std::set<std::size_t> const groups(kept.begin(), kept.end());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!groups.contains(i / size)) keys[i] = -HUGE_VAL;
  }
  chosen c{largest(keys, rule.topk), {}};
  double sum = 0;
  for (int id : c.ids) sum += s[static_cast<std::size_t>(id)];
  for (int id : c.ids) {
    double const share = s[static_cast<std::size_t>(id)] / (rule.normalise ? sum : 1);
    c.weights.push_back(share * double{rule.scale});
  }
  return c;
}

}  // namespace ferry::deepseek::reference
