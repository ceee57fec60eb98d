// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/load_window.hpp>

#include "base/fail.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ferry {

load_window::load_window(int num_layers, int num_experts)
    : num_layers_(num_layers),
      num_experts_(num_experts),
      sums_(static_cast<std::size_t>(num_layers) * static_cast<std::size_t>(num_experts)),
      squares_(sums_.size()) {}

result<load_window> load_window::make(int num_layers, int num_experts) {
  if (num_layers < 1 || num_experts < 1)
    return fail(error_code::invalid_argument,
                "a window of {} layers and {} experts; at least 1 of each", num_layers,
                num_experts);
  return load_window(num_layers, num_experts);
}

result<load_window> load_window::restore(int num_layers, int num_experts, std::int64_t steps,
                                         std::vector<double> sums,
                                         std::vector<double> sums_of_squares) {
  FERRY_TRY(auto window, make(num_layers, num_experts));
  auto const size = window.sums_.size();
  if (sums.size() != size || sums_of_squares.size() != size)
    return fail(error_code::invalid_argument,
                "{} sums and {} sums of squares, but {} layers of {} experts make {}", sums.size(),
                sums_of_squares.size(), num_layers, num_experts, size);
  if (steps < 0) return fail(error_code::invalid_argument, "a window of {} steps", steps);
  for (std::size_t i = 0; i < size; ++i) {
    double const sum = sums[i], squares = sums_of_squares[i];
    bool const possible =
        std::isfinite(sum) && std::isfinite(squares) && sum >= 0 &&
        (steps > 0 ? squares * static_cast<double>(steps) >= sum * sum * (1 - 1e-9)
                   : sum == 0 && squares == 0);
    if (!possible)
      return fail(error_code::invalid_argument,
                  "expert {} in layer {}: no {} steps make the sum {} and the sum of squares {}",
                  i % static_cast<std::size_t>(num_experts),
                  i / static_cast<std::size_t>(num_experts), steps, sum, squares);
  }
  window.steps_ = steps;
  window.sums_ = std::move(sums);
  window.squares_ = std::move(sums_of_squares);
  return window;
}

result<void> load_window::add_step(std::span<std::int64_t const> counts) {
  if (counts.size() != sums_.size())
    return fail(error_code::invalid_argument, "{} counts, but {} layers of {} experts make {}",
                counts.size(), num_layers_, num_experts_, sums_.size());
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] < 0)
      return fail(error_code::invalid_argument, "expert {} in layer {} was counted {} times",
                  i % static_cast<std::size_t>(num_experts_),
                  i / static_cast<std::size_t>(num_experts_), counts[i]);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    auto const count = static_cast<double>(counts[i]);
    sums_[i] += count;
    squares_[i] += count * count;
  }
  ++steps_;
  return {};
}

void load_window::clear() {
  steps_ = 0;
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill(squares_.begin(), squares_.end(), 0.0);
}

double load_window::mean(int layer, int expert) const {
  return steps_ == 0 ? 0 : sum(layer, expert) / static_cast<double>(steps_);
}

double load_window::variance(int layer, int expert) const {
  if (steps_ == 0) return 0;
  double const m = mean(layer, expert);
  return std::max(0.0, sum_of_squares(layer, expert) / static_cast<double>(steps_) - m * m);
}

result<expert_loads> load_window::loads() const {
  if (steps_ == 0) return fail(error_code::invalid_argument, "the window is empty: 0 steps");
  expert_loads loads{num_layers_, num_experts_, sums_};
  FERRY_CHECK(validate(loads));
  return loads;
}

}  // namespace ferry
