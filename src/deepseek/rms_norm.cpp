// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/rms_norm.hpp>

#include "deepseek/row_loops.hpp"

namespace ferry::deepseek {

void rms_norm(matrix<float const> x, std::span<float const> weight, float epsilon,
              matrix<float> y) {
  loops().normalise({x, weight.data(), epsilon, y});
}

}  // namespace ferry::deepseek
