// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Root-mean-square normalisation.
#pragma once

#include <ferry/base/matrix.hpp>

#include <span>

namespace ferry::deepseek {

/// y = x / sqrt(mean(x^2) + epsilon) * weight, row by row, in f32.
/// Shapes   x, y [n, columns], weight [columns]; y may be x
void rms_norm(matrix<float const> x, std::span<float const> weight, float epsilon, matrix<float> y);

}  // namespace ferry::deepseek
