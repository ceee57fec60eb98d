// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/expert_loads.hpp>

#include "base/fail.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ferry {
namespace {

result<void> check_shape(expert_loads const& loads) {
  if (loads.num_layers < 1 || loads.num_experts < 1)
    return fail(error_code::invalid_argument,
                "loads of {} layers and {} experts; at least 1 of each", loads.num_layers,
                loads.num_experts);
  auto const wanted =
      static_cast<std::size_t>(loads.num_layers) * static_cast<std::size_t>(loads.num_experts);
  if (loads.values.size() != wanted)
    return fail(error_code::invalid_argument, "{} loads, but {} layers of {} experts make {}",
                loads.values.size(), loads.num_layers, loads.num_experts, wanted);
  return {};
}

}  // namespace

result<void> validate(expert_loads const& loads) {
  FERRY_CHECK(check_shape(loads));
  double sum = 0;
  for (int l = 0; l < loads.num_layers; ++l)
    for (int e = 0; e < loads.num_experts; ++e) {
      double const load = loads.layer(l)[static_cast<std::size_t>(e)];
      if (!std::isfinite(load) || load < 0)
        return fail(error_code::invalid_argument,
                    "the load of expert {} in layer {} is {}; it must be finite and at least 0", e,
                    l, load);
      sum += load;
    }
  if (!std::isfinite(sum))
    return fail(error_code::invalid_argument, "the loads add up to more than a double holds");
  if (sum == 0)
    return fail(error_code::invalid_argument,
                "the window is empty: all loads of {} layers and {} experts are 0",
                loads.num_layers, loads.num_experts);
  return {};
}

result<expert_loads> average(std::span<expert_loads const> windows) {
  if (windows.empty()) return fail(error_code::invalid_argument, "no window of loads was given");
  auto const& first = windows.front();
  for (auto const& w : windows) {
    if (w.num_layers != first.num_layers || w.num_experts != first.num_experts)
      return fail(error_code::invalid_argument,
                  "windows of different shapes: {} layers of {} experts, and {} of {}",
                  first.num_layers, first.num_experts, w.num_layers, w.num_experts);
    FERRY_CHECK(validate(w));
  }
  // One window stays as it is, bit for bit.
  if (windows.size() == 1) return first;
  expert_loads mean{first.num_layers, first.num_experts,
                    std::vector<double>(first.values.size(), 0.0)};
  for (auto const& w : windows)
    for (int l = 0; l < w.num_layers; ++l) {
      auto const from = w.layer(l);
      double const sum = std::accumulate(from.begin(), from.end(), 0.0);
      if (sum == 0) continue;
      auto to = mean.layer(l);
      for (std::size_t e = 0; e < to.size(); ++e)
        to[e] += from[e] / sum / static_cast<double>(windows.size());
    }
  return mean;
}

}  // namespace ferry
