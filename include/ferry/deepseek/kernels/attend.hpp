// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Attention over the latent cache.
#pragma once

#include <ferry/deepseek/kernels/dot.hpp>
#include <ferry/deepseek/kernels/softmax.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// Each token's queries over the rows of its sequence:
/// out[t][h] = sum over p of softmax(scale * queries[t][h] . rows[p]) * rows[p][0, latent)
/// A strip takes all heads of a token where it has a device to itself, so that cached rows are read
/// once for all; else one head.
/// Shapes   queries [tokens, heads, columns]: absorbed, then rotated; out [tokens, heads, latent]
///          cache [sequences, positions, columns]: latent, then rotated key
///          scores `scores_stride` floats a strip: scores_of() of the most positions of a token
/// Units    sequence_stride and scores_stride in elements
/// Order    every sum runs in an order that a token's position alone decides
struct attend {
  float const* queries = nullptr;
  float const* cache = nullptr;
  std::int64_t sequence_stride = 0;
  std::int32_t const* sequences = nullptr;  ///< per token; below 0: no token, its row is left alone
  std::int32_t const* positions = nullptr;  ///< per token; it sees positions 0 .. this one
  std::int64_t tokens = 0;
  int heads = 0;
  int columns = 0;
  int latent = 0;  ///< leading columns of a cached row that are its value
  float scale = 1;
  float* scores = nullptr;
  std::int64_t scores_stride = 0;
  float* out = nullptr;

  /// Floats of scratch that one strip needs for tokens of up to `positions` positions.
  template <strip Strip>
  static constexpr std::int64_t scores_of(int heads, std::int64_t positions) {
    return (Strip::columns_at_once == 0 ? heads : 1) * positions;
  }

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    int const taken = Strip::columns_at_once == 0 ? heads : 1;
    int const shares = Strip::columns_at_once == 0 ? 1 : heads;
    for (std::int64_t item = s.index(); item < tokens * shares; item += s.count()) {
      std::int64_t const token = item / shares;
      int const head = static_cast<int>(item % shares);
      if (sequences[token] < 0) continue;
      std::int64_t const row = token * heads + head;
      one_share(s, queries + row * columns, cache + sequences[token] * sequence_stride,
                std::int64_t{positions[token]} + 1, taken, scores + s.index() * scores_stride,
                out + row * latent);
    }
  }

 private:
  template <strip Strip>
  FERRY_FN void one_share(Strip const& s, float const* query, float const* rows, std::int64_t count,
                          int taken, float* score, float* to) const {
    // Positions outside, heads inside: cached rows are read once for all heads.
    std::int64_t p = 0;
    for (; p + 4 <= count; p += 4) {
      for (int h = 0; h < taken; ++h) {
        s.store_four(dot_four(s, query + h * columns, rows + p * columns, columns, columns) * scale,
                     score + h * count + p);
      }
    }
    for (; p < count; ++p) {
      for (int h = 0; h < taken; ++h) {
        float const one = dot(s, query + h * columns, rows + p * columns, columns) * scale;
        if (s.leader()) score[h * count + p] = one;
      }
    }
    s.sync();
    for (int h = 0; h < taken; ++h) softmax(s, score + h * count, count);
    s.sync();
    s.for_each(std::int64_t{taken} * latent, [&](std::int64_t i) { to[i] = 0; });
    std::int64_t const fours = count / 4 * 4;
    for (p = 0; p < fours; p += Strip::sums_held) {
      std::int64_t const held = fours - p < Strip::sums_held ? fours - p : Strip::sums_held;
      for (int h = 0; h < taken; ++h) {
        add_weighted(s, score + h * count + p, rows + p * columns, held, to + h * latent);
      }
    }
    for (p = fours; p < count; ++p) {
      for (int h = 0; h < taken; ++h) {
        float const weight = score[h * count + p];
        float const* const row = rows + p * columns;
        float* const sum = to + h * latent;
        s.for_each(latent, [&](std::int64_t i) { sum[i] += weight * row[i]; });
      }
    }
    // The scratch is written anew for the next share.
    s.sync();
  }

  /// to += weights . rows, four rows at a time, whose products are summed first.
  template <strip Strip>
  FERRY_FN void add_weighted(Strip const& s, float const* weights, float const* rows,
                             std::int64_t count, float* to) const {
    std::int64_t const stride = columns;
    std::int64_t i = 0;
    for (; i + strip_lanes <= latent; i += strip_lanes) {
      auto sum = s.load(to + i);
      for (std::int64_t p = 0; p < count; p += 4) {
        float const* const w = weights + p;
        float const* const r = rows + p * stride + i;
        auto const pair = w[0] * s.load(r) + w[1] * s.load(r + stride);
        auto const other = w[2] * s.load(r + 2 * stride) + w[3] * s.load(r + 3 * stride);
        sum = sum + (pair + other);
      }
      s.store(sum, to + i);
    }
    for (std::int64_t p = 0; i < latent && p < count; p += 4) {
      float const* const w = weights + p;
      float const* const r = rows + p * stride + i;
      s.for_each(latent - i, [&](std::int64_t j) {
        to[i + j] += (w[0] * r[j] + w[1] * r[stride + j]) +
                     (w[2] * r[2 * stride + j] + w[3] * r[3 * stride + j]);
      });
    }
  }
};

}  // namespace ferry::deepseek
