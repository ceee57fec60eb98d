// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How busy each expert was, per layer.
#pragma once

#include <ferry/base/result.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace ferry {

/// The load of every expert in one window of time: choices that named it, or anything else that
/// adds up. Only ratios within a layer matter to the solvers.
struct expert_loads {
  int num_layers = 0;
  int num_experts = 0;
  std::vector<double> values;  ///< [layers, experts]

  std::span<double const> layer(int l) const {
    return {values.data() + static_cast<std::size_t>(l) * static_cast<std::size_t>(num_experts),
            static_cast<std::size_t>(num_experts)};
  }
  std::span<double> layer(int l) {
    return {values.data() + static_cast<std::size_t>(l) * static_cast<std::size_t>(num_experts),
            static_cast<std::size_t>(num_experts)};
  }
};

/// Whether the loads can be worked with. A layer that is all zeros is in order (a dense layer, or
/// one that saw nothing); a window that is all zeros is not, because nothing was measured. Errors
/// invalid_argument no layers or no experts, another number of values than layers x experts,
///          a load that is negative, NaN or infinite (with its layer and expert), or only zeros
result<void> validate(expert_loads const& loads);

/// One set of loads from several windows, each of which counts the same in every layer, however
/// many tokens it saw: a short window says as much about where load goes as a long one. Errors
/// invalid_argument no window, windows of different shapes, or what `validate` refuses
result<expert_loads> average(std::span<expert_loads const> windows);

}  // namespace ferry
