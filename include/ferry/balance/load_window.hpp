// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Statistics over the steps of a window.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/base/result.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

/// Sums and sums of squares of what each (layer, expert) got in each step of a window, from which
/// mean and variance follow. Masked choices and padding are no load: whoever counts leaves them
/// out.
class load_window {
 public:
  /// Errors   invalid_argument a number below 1
  static result<load_window> make(int num_layers, int num_experts);
  /// A window as it was saved.
  /// Shapes   sums and sums_of_squares [layers, experts]
  /// Errors   invalid_argument shapes, numbers that no steps could have made (a negative or
  ///          non-finite sum, a sum of squares below sum^2 / steps), or steps below 0
  static result<load_window> restore(int num_layers, int num_experts, std::int64_t steps,
                                     std::vector<double> sums, std::vector<double> sums_of_squares);

  /// One more step.
  /// Shapes   counts [layers, experts], each at least 0
  /// Errors   invalid_argument another size, or a negative count; the window is then unchanged
  result<void> add_step(std::span<std::int64_t const> counts);
  /// Forgets all steps.
  void clear();

  int num_layers() const { return num_layers_; }
  int num_experts() const { return num_experts_; }
  std::int64_t steps() const { return steps_; }
  double sum(int layer, int expert) const { return sums_[at(layer, expert)]; }
  double sum_of_squares(int layer, int expert) const { return squares_[at(layer, expert)]; }
  /// Per step; 0 where there was none.
  double mean(int layer, int expert) const;
  /// Of the steps' counts around their mean (divided by steps, not steps - 1).
  double variance(int layer, int expert) const;

  /// The sums, for the solvers.
  /// Errors   invalid_argument the window is empty: no step, or none that named an expert
  result<expert_loads> loads() const;

 private:
  load_window(int num_layers, int num_experts);
  std::size_t at(int layer, int expert) const {
    return static_cast<std::size_t>(layer) * static_cast<std::size_t>(num_experts_) +
           static_cast<std::size_t>(expert);
  }
  int num_layers_;
  int num_experts_;
  std::int64_t steps_ = 0;
  std::vector<double> sums_;
  std::vector<double> squares_;
};

}  // namespace ferry
