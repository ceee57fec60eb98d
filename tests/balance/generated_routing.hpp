// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Loads and routes for tests, the same on every machine.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/balance/routing_trace.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace ferry::test {

/// splitmix64: the standard library's distributions differ between its implementations.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  int below(int limit) { return static_cast<int>(next() % static_cast<std::uint64_t>(limit)); }
  double normal() {
    double const r = std::sqrt(-2 * std::log(1 - uniform()));
    return r * std::cos(6.283185307179586 * uniform());
  }
  template <class T>
  void shuffle(std::vector<T>& v) {
    for (int i = static_cast<int>(v.size()) - 1; i > 0; --i)
      std::swap(v[static_cast<std::size_t>(i)], v[static_cast<std::size_t>(below(i + 1))]);
  }

 private:
  std::uint64_t state_;
};

/// Whole loads that fall like rank^-exponent, shuffled.
inline std::vector<double> power_law(int experts, double exponent, random_source& random) {
  std::vector<double> loads;
  for (int e = 0; e < experts; ++e)
    loads.push_back(
        std::floor(1e5 * std::pow(e + 1.0, -exponent) * (0.9 + 0.2 * random.uniform())));
  random.shuffle(loads);
  return loads;
}

/// How a generated router behaves, in units of its logits.
struct router {
  int experts = 256, groups = 8, kept_groups = 4, topk = 8;
  double expert_spread = 0.8;  ///< some experts are more popular than others
  double group_spread = 0.3;   ///< and so are some groups
  double group_pull = 0.7;     ///< a token likes or dislikes a group as a whole
};

/// Routes as DeepSeek-V3 does: sigmoid scores, the groups with the largest sums of their two best
/// scores are kept, and of their experts the best are taken.
inline routing_trace group_limited_trace(router const& r, int tokens, int layers,
                                         std::uint64_t seed) {
  random_source random(seed);
  int const size = r.experts / r.groups;
  routing_trace trace{tokens, layers, r.topk, {}};
  std::vector<double> liked(static_cast<std::size_t>(layers * r.experts));
  for (int l = 0; l < layers; ++l)
    for (int g = 0; g < r.groups; ++g) {
      double const group = r.group_spread * random.normal();
      for (int i = 0; i < size; ++i)
        liked[static_cast<std::size_t>(l * r.experts + g * size + i)] =
            group + r.expert_spread * random.normal();
    }
  std::vector<double> score(static_cast<std::size_t>(r.experts));
  std::vector<double> of_group(static_cast<std::size_t>(r.groups));
  for (int t = 0; t < tokens; ++t)
    for (int l = 0; l < layers; ++l) {
      for (int g = 0; g < r.groups; ++g) {
        double const pull = r.group_pull * random.normal();
        double best = 0, second = 0;
        for (int e = g * size; e < (g + 1) * size; ++e) {
          double const logit =
              liked[static_cast<std::size_t>(l * r.experts + e)] + pull + random.normal();
          double const s = 1 / (1 + std::exp(-logit));
          score[static_cast<std::size_t>(e)] = s;
          second = std::max(second, std::min(best, s));
          best = std::max(best, s);
        }
        of_group[static_cast<std::size_t>(g)] = best + second;
      }
      std::vector<int> order(static_cast<std::size_t>(r.groups));
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int a, int b) {
        return of_group[static_cast<std::size_t>(a)] > of_group[static_cast<std::size_t>(b)];
      });
      std::vector<int> kept;
      for (int g = 0; g < r.kept_groups; ++g)
        for (int i = 0; i < size; ++i)
          kept.push_back(order[static_cast<std::size_t>(g)] * size + i);
      std::partial_sort(kept.begin(), kept.begin() + r.topk, kept.end(), [&](int a, int b) {
        return score[static_cast<std::size_t>(a)] > score[static_cast<std::size_t>(b)];
      });
      trace.experts.insert(trace.experts.end(), kept.begin(), kept.begin() + r.topk);
    }
  return trace;
}

}  // namespace ferry::test
