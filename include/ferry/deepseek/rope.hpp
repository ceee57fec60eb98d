// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rotary position embedding over interleaved pairs, with YaRN's stretched frequencies.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>
#include <ferry/deepseek/kernels/rotate.hpp>
#include <ferry/deepseek/model_config.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace ferry::deepseek {

struct rope_options {
  int dimensions = 0;  ///< of the rotated part of a head, even
  double theta = 10000;
  std::optional<yarn> stretch;
};

/// The angle per position of each pair: theta^(-2i/d), blended by YaRN with itself over `factor`.
std::vector<double> rope_frequencies(rope_options const& options);

/// What the scores of heads of `head_dimensions` columns are multiplied with before the softmax.
double softmax_scale(int head_dimensions, rope_options const& options);

/// Cosines and sines of all positions.
/// Order    angles are computed in f64: at position 163839 f32 angles would be off by 1.6e-3
class rope {
 public:
  rope() = default;
  /// Errors   invalid_argument dimensions odd or below 2, positions below 1, a value of the
  ///          stretch outside its limits
  static result<rope> make(rope_options const& options, std::int64_t positions);

  int dimensions() const { return dimensions_; }
  std::int64_t positions() const { return positions_; }

  /// Turns pair (2i, 2i+1) by the position's i-th angle: (a cos - b sin, a sin + b cos).
  /// Shapes   from, to [dimensions]; to may be from; position < positions()
  void turn(float const* from, std::int64_t position, float* to) const {
    int const pairs = dimensions_ / 2;
    for (int i = 0; i < pairs; ++i) rotate_pair(from, at(position), pairs, i, to);
  }
  /// Cosines, then sines, [dimensions / 2] each.
  float const* at(std::int64_t position) const { return table_.data() + position * dimensions_; }

 private:
  int dimensions_ = 0;
  std::int64_t positions_ = 0;
  std::vector<float> table_;
};

}  // namespace ferry::deepseek
