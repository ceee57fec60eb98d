// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The routed experts that live on one rank.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>
#include <ferry/deepseek/mlp.hpp>
#include <ferry/exchange.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace ferry::deepseek {

/// Runs each local expert on the rows that `dispatch` laid before it.
/// Lifetime copies share the weights; any number of threads may call `apply` at once
class experts {
 public:
  experts() = default;

  /// The rank's experts in order of their ids; may be none. `wire` is the exchange's.
  /// Errors   invalid_argument widths differ; unsupported opaque rows
  static result<experts> make(std::vector<mlp> local, int hidden, ferry::wire wire);

  /// Reads rows of every wire format (quantised ones times their scales) in every layout, and
  /// writes each result at its row's position.
  /// Shapes   out [>= last position used, hidden]; scratch of at least scratch_size() elements
  /// Errors   invalid_argument `in` is of other experts, or too long for out; internal
  result<void> apply(received const& in, matrix<float> out, std::span<float> scratch) const;

  std::size_t scratch_size() const;
  int size() const { return static_cast<int>(local_.size()); }

  /// The expert in a slot, below size(). Whoever puts another one there sees to it that no `apply`
  /// runs.
  mlp& in_slot(int slot) { return local_[static_cast<std::size_t>(slot)]; }

 private:
  std::vector<mlp> local_;
  int hidden_ = 0;
  ferry::wire wire_ = wire::f32;
};

/// Writes one row as it arrived to `to` in f32.
/// Shapes   row and scales as the wire format `w` has them, to [hidden]
void decode_row(ferry::wire w, std::byte const* row, std::byte const* scales, int hidden,
                float* to);

}  // namespace ferry::deepseek
