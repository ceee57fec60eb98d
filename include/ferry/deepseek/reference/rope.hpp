// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rotary embedding in f64, without tables: plain and slow.
#pragma once

#include <ferry/deepseek/rope.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry::deepseek::reference {

/// The angle of pair i at position 1.
inline double rope_frequency(rope_options const& o, int i) {
  double const pi = std::acos(-1.0);
  double const plain = 1 / std::pow(o.theta, 2.0 * i / o.dimensions);
  if (!o.stretch) return plain;
  auto const pair = [&](double turns) {
    double const positions = static_cast<double>(o.stretch->original_max_position_embeddings);
    return o.dimensions * std::log(positions / (turns * 2 * pi)) / (2 * std::log(o.theta));
  };
  double const low = std::fmax(std::floor(pair(o.stretch->beta_fast)), 0);
  double high = std::fmin(std::ceil(pair(o.stretch->beta_slow)), o.dimensions - 1);
  if (high == low) high = low + 0.001;
  double ramp = (i - low) / (high - low);  // 0: as trained, 1: stretched
  ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
  return plain * (1 - ramp) + plain / o.stretch->factor * ramp;
}

/// Turns every pair (2i, 2i+1) of x.
inline std::vector<double> turn(rope_options const& o, std::vector<double> x,
                                std::int64_t position) {
  for (int i = 0; i < o.dimensions / 2; ++i) {
    double const angle = static_cast<double>(position) * rope_frequency(o, i);
    auto const at = static_cast<std::size_t>(2 * i);
    double const a = x[at];
    double const b = x[at + 1];
    x[at] = a * std::cos(angle) - b * std::sin(angle);
    x[at + 1] = a * std::sin(angle) + b * std::cos(angle);
  }
  return x;
}

}  // namespace ferry::deepseek::reference
