// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// New rows of the latent cache.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/deepseek/kernels/normalise_rows.hpp>
#include <ferry/deepseek/kernels/rotate.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// Writes each token's row: its normalised latent, then its rotated key.
/// Shapes   from [tokens, latent + dimensions]; cache [sequences, positions, latent + dimensions]
///          weight [latent]; angles [positions, dimensions], as `rope` has them
/// Units    sequence_stride in elements
struct fill_cache {
  matrix<float const> from;
  float const* weight = nullptr;
  float epsilon = 0;
  std::int32_t const* sequences = nullptr;  ///< per token; below 0: no token
  std::int32_t const* positions = nullptr;  ///< per token
  float const* angles = nullptr;
  int latent = 0;
  int dimensions = 0;
  float* cache = nullptr;
  std::int64_t sequence_stride = 0;

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    for (std::int64_t token = s.index(); token < from.rows; token += s.count()) {
      if (sequences[token] < 0) continue;
      std::int64_t const position = positions[token];
      float* const row =
          cache + sequences[token] * sequence_stride + position * (latent + dimensions);
      normalise_row(s, from[token], weight, epsilon, latent, row);
      rotate(s, from[token] + latent, angles + position * dimensions, dimensions / 2, row + latent);
    }
  }
};

}  // namespace ferry::deepseek
