// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/rope.hpp>

#include "base/fail.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ferry::deepseek {
namespace {

/// The pair that turns `turns` times over the positions trained first.
double pair_of(double turns, rope_options const& options) {
  double const original = static_cast<double>(options.stretch->original_max_position_embeddings);
  return options.dimensions * std::log(original / (2 * std::numbers::pi * turns)) /
         (2 * std::log(options.theta));
}

/// YaRN's attention factor: how much sharper the softmax has to be over a stretched context.
double attention_factor(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

result<void> check(rope_options const& options, std::int64_t positions) {
  if (options.dimensions < 2 || options.dimensions % 2 != 0) {
    return fail(error_code::invalid_argument, "rope dimensions {} must be even and at least 2",
                options.dimensions);
  }
  if (positions < 1) {
    return fail(error_code::invalid_argument, "rope positions {} must be at least 1", positions);
  }
  if (!(options.theta > 1)) {
    return fail(error_code::invalid_argument, "rope theta {} must be above 1", options.theta);
  }
  if (!options.stretch) return {};
  yarn const& s = *options.stretch;
  if (!(s.factor > 0) || s.original_max_position_embeddings < 1 || !(s.beta_fast > 0) ||
      !(s.beta_slow > 0)) {
    return fail(error_code::invalid_argument,
                "yarn factor {}, original positions {}, beta_fast {} and beta_slow {} must all be "
                "above 0",
                s.factor, s.original_max_position_embeddings, s.beta_fast, s.beta_slow);
  }
  return {};
}

}  // namespace

std::vector<double> rope_frequencies(rope_options const& options) {
  int const pairs = options.dimensions / 2;
  std::vector<double> frequencies(static_cast<std::size_t>(pairs));
  double low = 0;
  double high = 0;
  if (options.stretch) {
    low = std::max(std::floor(pair_of(options.stretch->beta_fast, options)), 0.0);
    high =
        std::min(std::ceil(pair_of(options.stretch->beta_slow, options)), options.dimensions - 1.0);
    if (low == high) high += 0.001;  // a step instead of a ramp
  }
  for (int i = 0; i < pairs; ++i) {
    double const original = std::pow(options.theta, -2.0 * i / options.dimensions);
    double& frequency = frequencies[static_cast<std::size_t>(i)];
    frequency = original;
    if (options.stretch) {
      double const ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
      frequency = original / options.stretch->factor * ramp + original * (1 - ramp);
    }
  }
  return frequencies;
}

double softmax_scale(int head_dimensions, rope_options const& options) {
  double scale = 1 / std::sqrt(static_cast<double>(head_dimensions));
  if (options.stretch) {
    double const m = attention_factor(options.stretch->factor, options.stretch->mscale_all_dim);
    scale *= m * m;
  }
  return scale;
}

result<rope> rope::make(rope_options const& options, std::int64_t positions) {
  FERRY_CHECK(check(options, positions));
  rope r;
  r.dimensions_ = options.dimensions;
  r.positions_ = positions;
  std::size_t const pairs = static_cast<std::size_t>(options.dimensions) / 2;
  double length = 1;  // of the turned vectors; other than 1 only where the two mscales differ
  if (options.stretch) {
    length = attention_factor(options.stretch->factor, options.stretch->mscale) /
             attention_factor(options.stretch->factor, options.stretch->mscale_all_dim);
  }
  std::vector<double> const frequencies = rope_frequencies(options);
  r.table_.resize(static_cast<std::size_t>(positions) * 2 * pairs);
  for (std::int64_t p = 0; p < positions; ++p) {
    float* row = r.table_.data() + static_cast<std::size_t>(p) * 2 * pairs;
    for (std::size_t i = 0; i < pairs; ++i) {
      double const angle = static_cast<double>(p) * frequencies[i];
      row[i] = static_cast<float>(std::cos(angle) * length);
      row[pairs + i] = static_cast<float>(std::sin(angle) * length);
    }
  }
  return r;
}

}  // namespace ferry::deepseek
