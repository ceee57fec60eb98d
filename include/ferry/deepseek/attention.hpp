// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Multi-head latent attention over a latent KV cache, weights absorbed.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>
#include <ferry/deepseek/linear.hpp>
#include <ferry/deepseek/model_config.hpp>
#include <ferry/deepseek/rope.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace ferry::deepseek {

struct attention_shape {
  int hidden = 0;
  int num_heads = 0;
  int q_lora_rank = 0;  ///< 0: queries in one piece
  int kv_lora_rank = 0;
  int nope = 0;  ///< columns of a head's query and key that are not rotated
  int rope = 0;  ///< columns that are; they come last
  int v = 0;     ///< columns of a head's value
  float epsilon = 1e-6F;
  float softmax_scale = 1;

  static attention_shape of(model_config const& config);

  int cached_columns() const { return kv_lora_rank + rope; }
  int query_columns() const { return num_heads * (nope + rope); }
};

/// The rotary embedding that a model's config asks for.
rope_options rope_options_of(model_config const& config);

/// What a layer remembers of every position of every sequence: the normalised latent, then the
/// rotated key that all heads share. Positions that were never written hold nothing in particular.
class latent_cache {
 public:
  latent_cache() = default;
  /// Errors   invalid_argument a size below 1; out_of_memory
  static result<latent_cache> make(int sequences, int positions, int columns);

  float* row(std::int64_t sequence, std::int64_t position) {
    return values_.get() + (sequence * positions_ + position) * columns_;
  }
  float const* row(std::int64_t sequence, std::int64_t position) const {
    return values_.get() + (sequence * positions_ + position) * columns_;
  }
  int sequences() const { return sequences_; }
  int positions() const { return positions_; }
  int columns() const { return columns_; }

 private:
  std::unique_ptr<float[]> values_;
  int sequences_ = 0;
  int positions_ = 0;
  int columns_ = 0;
};

/// The matrices of one layer, in f32, [out, in].
struct attention_weights {
  matrix<float const> input;       ///< q_a (or q) on top of kv_a: one product reads x for both
  std::span<float const> q_norm;   ///< [q_lora_rank]; empty without q LoRA
  matrix<float const> q_b;         ///< no data without q LoRA
  std::span<float const> kv_norm;  ///< [kv_lora_rank]
  matrix<float const> kv_b;        ///< rows per head [nope, v]
  matrix<float const> output;      ///< [hidden, heads * v]
};

/// One layer's attention. Every token is one row that attends over its own sequence's cache up to
/// its own position, alone: prefill in chunks of any size and decode give the same bits.
/// Lifetime copies share the weights; any number of threads may call `apply`, on different caches
class attention {
 public:
  attention() = default;

  /// kv_b is absorbed into query and output, so its input is never quantised.
  /// Errors   invalid_argument shapes that do not fit; those of linear::pack
  static result<attention> make(attention_shape const& shape, attention_weights const& weights,
                                linear_options const& options = {});

  struct tokens {
    matrix<float const> x;                    ///< [n, hidden], normalised
    std::span<std::int32_t const> sequences;  ///< [n], slots of the cache
    std::span<std::int32_t const> positions;  ///< [n]
  };
  /// Writes the tokens' rows to the cache and attends.
  /// Shapes   out [n, hidden]; scratch of at least scratch_size(cache positions) elements
  /// Order    a token's earlier positions are in the cache, or come earlier in `in`
  /// Errors   invalid_argument shapes, a slot or position outside cache or rope; internal
  result<void> apply(tokens const& in, deepseek::rope const& rope, latent_cache& cache,
                     matrix<float> out, std::span<float> scratch) const;

  std::size_t scratch_size(int positions) const;
  attention_shape const& shape() const { return shape_; }

 private:
  struct workspace;
  workspace divide(std::span<float> scratch) const;
  result<void> project(tokens const& in, deepseek::rope const& rope, latent_cache& cache,
                       workspace const& work) const;
  result<void> apply_block(tokens const& in, deepseek::rope const& rope, latent_cache& cache,
                           matrix<float> out, workspace const& work) const;

  attention_shape shape_;
  linear input_;
  std::vector<float> q_norm_;
  linear q_b_;
  std::vector<float> kv_norm_;
  std::vector<linear> absorbed_keys_;  // per head, [kv_lora_rank, nope]
  std::vector<linear> values_;         // per head, [v, kv_lora_rank]
  linear output_;
};

}  // namespace ferry::deepseek
