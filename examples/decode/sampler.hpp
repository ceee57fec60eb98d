// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Choosing the next token.
#pragma once

#include <ferry/result.hpp>

#include <cstdint>
#include <span>

namespace ferry::decode {

/// Chooses for one prompt. What it draws depends on seed and prompt alone, so that a text does not
/// depend on how many ranks or other prompts there are.
class sampler {
 public:
  sampler(double temperature, std::uint64_t seed, std::uint64_t prompt);

  /// At temperature 0 the largest logit, the lowest id among equals; else a draw.
  /// Errors   malformed_input naming a token whose logit is NaN, or that all are without bounds:
  ///          the weights, or the precision, are not fit for this
  result<std::int32_t> choose(std::span<float const> logits);

 private:
  double draw();  ///< in [0, 1)

  double temperature_;
  std::uint64_t state_;
};

}  // namespace ferry::decode
