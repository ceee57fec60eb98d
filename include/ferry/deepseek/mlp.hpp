// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The gated feed-forward block: dense layers, shared experts and routed experts alike.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>
#include <ferry/deepseek/linear.hpp>

#include <cstddef>
#include <span>

namespace ferry::deepseek {

/// y = down(silu(gate(x)) * up(x)), row by row.
/// Lifetime copies share the weights; any number of threads may call `apply` at once
class mlp {
 public:
  mlp() = default;

  /// `gate_and_up` holds the gate's rows, then those of up: one product reads x once for both.
  /// Shapes   gate_and_up [2 * width, hidden], down [hidden, width]
  /// Errors   those of linear::pack; invalid_argument shapes that do not fit
  static result<mlp> make(matrix<float const> gate_and_up, matrix<float const> down,
                          linear_options const& options = {});

  /// Shapes   x, y [n, hidden]; scratch of at least scratch_size() elements. y may be x
  /// Errors   invalid_argument shapes; internal
  result<void> apply(matrix<float const> x, matrix<float> y, std::span<float> scratch) const;

  std::size_t scratch_size() const;
  int hidden() const { return down_.out_features(); }
  int width() const { return down_.in_features(); }
  linear const& gate_and_up() const { return gate_and_up_; }
  linear const& down() const { return down_; }

 private:
  linear gate_and_up_;
  linear down_;
};

}  // namespace ferry::deepseek
