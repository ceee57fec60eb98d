// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The model's own inner loops (all that is no matrix product), built once per x86-64 level. Every
/// sum has its order written down and nothing is contracted, so all levels give the same bits.
#pragma once

#include <ferry/base/number_formats.hpp>
#include <ferry/base/types.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::deepseek {

/// One token's queries over its sequence's cache.
struct attend_input {
  float const* queries = nullptr;  ///< [heads, columns]: absorbed, then rotated
  float const* rows = nullptr;     ///< [count, columns]: latent, then rotated key
  std::int64_t count = 0;          ///< positions 0 .. the token's own
  int heads = 0;
  int columns = 0;
  int latent = 0;  ///< leading columns of a row that are its value
  float scale = 1;
};

struct row_loops {
  /// out[h] = sum over p of softmax(scale * queries[h] . rows[p]) * rows[p][0, latent)
  /// Shapes  scores [heads, count] is scratch, out [heads, latent]
  /// Order   every sum runs in an order that `count` alone decides
  void (*attend)(attend_input const& in, float* scores, float* out);

  /// [rows, 2 * width] of gate and up becomes [rows, width] of silu(gate) * up, in place.
  void (*gate_rows)(float* values, std::int64_t rows, std::int64_t width);

  /// to = from / sqrt(mean(from^2) + epsilon) * weight; to may be from.
  void (*normalise)(float const* from, float const* weight, float epsilon, std::int64_t n,
                    float* to);

  /// to += from
  void (*add)(float const* from, std::int64_t n, float* to);

  void (*to_bf16)(float const* from, std::int64_t n, bf16* to);

  /// What an fp8 product would read: codes times scale, block by block. to may be from.
  void (*through_fp8)(float const* from, std::int64_t n, float* to);

  /// A row as it arrived, in f32. Rows and scales may lie at any byte.
  void (*decode)(ferry::wire w, std::byte const* row, std::byte const* scales, std::int64_t n,
                 float* to);
};

/// Those of one level (level_v2, level_v3, level_v4 of exec/cpu/code_level.hpp).
template <class Level>
row_loops const& row_loops_of();

/// Those of the chosen level.
row_loops const& loops();

}  // namespace ferry::deepseek
