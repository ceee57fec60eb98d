// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/attention.hpp>
#include <ferry/deepseek/rms_norm.hpp>

#include "base/fail.hpp"
#include "deepseek/layer_weights.hpp"
#include "deepseek/row_loops.hpp"

#include <algorithm>
#include <new>

namespace ferry::deepseek {

attention_shape attention_shape::of(model_config const& config) {
  attention_shape shape;
  shape.hidden = config.hidden_size;
  shape.num_heads = config.num_heads;
  shape.q_lora_rank = config.q_lora_rank;
  shape.kv_lora_rank = config.kv_lora_rank;
  shape.nope = config.qk_nope_head_dim;
  shape.rope = config.qk_rope_head_dim;
  shape.v = config.v_head_dim;
  shape.epsilon = static_cast<float>(config.rms_norm_eps);
  shape.softmax_scale =
      static_cast<float>(deepseek::softmax_scale(shape.nope + shape.rope, rope_options_of(config)));
  return shape;
}

rope_options rope_options_of(model_config const& config) {
  return {config.qk_rope_head_dim, config.rope_theta, config.rope_scaling};
}

result<latent_cache> latent_cache::make(int sequences, int positions, int columns) {
  if (sequences < 1 || positions < 1 || columns < 1) {
    return fail(error_code::invalid_argument,
                "a cache of {} sequences, {} positions and {} columns: each must be at least 1",
                sequences, positions, columns);
  }
  std::size_t const size = static_cast<std::size_t>(sequences) *
                           static_cast<std::size_t>(positions) * static_cast<std::size_t>(columns);
  latent_cache cache;
  // Not cleared: pages that no sequence reaches are never resident.
  cache.values_.reset(new (std::nothrow) float[size]);
  if (!cache.values_) {
    return fail(error_code::out_of_memory, "no memory for a cache of {} sequences of {} positions",
                sequences, positions);
  }
  cache.sequences_ = sequences;
  cache.positions_ = positions;
  cache.columns_ = columns;
  return cache;
}

/// Buffers for up to linear::most_rows tokens.
struct attention::workspace {
  float* projected;  // [rows, q (or q_a) + kv_lora + rope]
  float* q;          // [rows, heads * (nope + rope)]; with q LoRA only
  float* queries;    // [rows, heads, kv_lora + rope]
  float* attended;   // [rows, heads, kv_lora]
  float* values;     // [rows, heads * v]
  float* scores;     // [heads, positions]
};

std::size_t attention::scratch_size(int positions) const {
  auto const rows = static_cast<std::size_t>(linear::most_rows);
  auto const heads = static_cast<std::size_t>(shape_.num_heads);
  auto const size = [](int n) { return static_cast<std::size_t>(n); };
  std::size_t per_row = size(input_.out_features()) + heads * size(shape_.cached_columns()) +
                        heads * size(shape_.kv_lora_rank) + heads * size(shape_.v);
  if (shape_.q_lora_rank > 0) per_row += size(shape_.query_columns());
  return rows * per_row + heads * size(positions);
}

attention::workspace attention::divide(std::span<float> scratch) const {
  float* next = scratch.data();
  auto const take = [&next](std::int64_t columns) {
    float* const taken = next;
    next += linear::most_rows * columns;
    return taken;
  };
  std::int64_t const heads = shape_.num_heads;
  workspace work{};
  work.projected = take(input_.out_features());
  work.q = shape_.q_lora_rank > 0 ? take(shape_.query_columns()) : work.projected;
  work.queries = take(heads * shape_.cached_columns());
  work.attended = take(heads * shape_.kv_lora_rank);
  work.values = take(heads * shape_.v);
  work.scores = next;
  return work;
}

namespace {

result<void> check(attention_shape const& s, attention_weights const& w) {
  int const q = s.q_lora_rank > 0 ? s.q_lora_rank : s.query_columns();
  auto const fits = [](matrix<float const> m, std::int64_t rows, std::int64_t columns) {
    return m.rows == rows && m.columns == columns;
  };
  bool const sizes = s.hidden > 0 && s.num_heads > 0 && s.q_lora_rank >= 0 && s.kv_lora_rank > 0 &&
                     s.nope > 0 && s.rope > 0 && s.rope % 2 == 0 && s.v > 0;
  bool const all = sizes && fits(w.input, q + s.cached_columns(), s.hidden) &&
                   fits(w.q_b, s.q_lora_rank > 0 ? s.query_columns() : 0, s.q_lora_rank) &&
                   w.q_norm.size() == static_cast<std::size_t>(s.q_lora_rank) &&
                   w.kv_norm.size() == static_cast<std::size_t>(s.kv_lora_rank) &&
                   fits(w.kv_b, std::int64_t{s.num_heads} * (s.nope + s.v), s.kv_lora_rank) &&
                   fits(w.output, s.hidden, std::int64_t{s.num_heads} * s.v);
  if (all) return {};
  return fail(error_code::invalid_argument,
              "attention weights (input {} by {}, q_b {} by {}, kv_b {} by {}, output {} by {}) "
              "do not fit hidden {}, {} heads of {} + {} and {}, q_lora {}, kv_lora {}",
              w.input.rows, w.input.columns, w.q_b.rows, w.q_b.columns, w.kv_b.rows, w.kv_b.columns,
              w.output.rows, w.output.columns, s.hidden, s.num_heads, s.nope, s.rope, s.v,
              s.q_lora_rank, s.kv_lora_rank);
}

result<void> check(attention::tokens const& in, deepseek::rope const& rope,
                   latent_cache const& cache) {
  auto const n = static_cast<std::size_t>(in.x.rows);
  if (in.sequences.size() != n || in.positions.size() != n) {
    return fail(error_code::invalid_argument, "{} rows with {} sequences and {} positions", n,
                in.sequences.size(), in.positions.size());
  }
  std::int64_t const limit = std::min<std::int64_t>(rope.positions(), cache.positions());
  for (std::size_t i = 0; i < n; ++i) {
    if (in.sequences[i] < 0 || in.sequences[i] >= cache.sequences() || in.positions[i] < 0 ||
        in.positions[i] >= limit) {
      return fail(error_code::invalid_argument,
                  "position {} of sequence {} in a cache of {} sequences of {} positions",
                  in.positions[i], in.sequences[i], cache.sequences(), limit);
    }
  }
  return {};
}

}  // namespace

result<attention> attention::make(attention_shape const& shape, attention_weights const& weights,
                                  linear_options const& options) {
  FERRY_CHECK(check(shape, weights));
  attention a;
  a.shape_ = shape;
  FERRY_TRY(a.input_, linear::pack(weights.input, options));
  a.q_norm_.assign(weights.q_norm.begin(), weights.q_norm.end());
  if (shape.q_lora_rank > 0) {
    FERRY_TRY(a.q_b_, linear::pack(weights.q_b, options));
  }
  a.kv_norm_.assign(weights.kv_norm.begin(), weights.kv_norm.end());
  FERRY_TRY(a.output_, linear::pack(weights.output, options));

  linear_options absorbed = options;
  absorbed.quantise_input = false;
  absorbed_matrices const heads = absorbed_matrices::of(shape, weights.kv_b);
  std::int64_t const keys_size = std::int64_t{shape.kv_lora_rank} * shape.nope;
  std::int64_t const values_size = std::int64_t{shape.v} * shape.kv_lora_rank;
  for (int h = 0; h < shape.num_heads; ++h) {
    FERRY_TRY(linear keys,
              linear::pack(dense(heads.keys.data() + h * keys_size, shape.kv_lora_rank, shape.nope),
                           absorbed));
    a.absorbed_keys_.push_back(std::move(keys));
    FERRY_TRY(linear values, linear::pack(dense(heads.values.data() + h * values_size, shape.v,
                                                shape.kv_lora_rank),
                                          absorbed));
    a.values_.push_back(std::move(values));
  }
  return a;
}

/// Fills the cache's rows of these tokens, and their absorbed and rotated queries.
result<void> attention::project(tokens const& in, deepseek::rope const& rope, latent_cache& cache,
                                workspace const& work) const {
  attention_shape const& s = shape_;
  std::int64_t const rows = in.x.rows;
  std::int64_t const projected = input_.out_features();
  std::int64_t const q_columns = projected - s.cached_columns();
  FERRY_CHECK(input_.apply(in.x, dense(work.projected, rows, projected)));
  std::int64_t q_stride = projected;
  if (s.q_lora_rank > 0) {
    matrix<float> const q_a{work.projected, rows, q_columns, projected};
    matrix<float const> const q_a_read{work.projected, rows, q_columns, projected};
    rms_norm(q_a_read, q_norm_, s.epsilon, q_a);
    q_stride = s.query_columns();
    FERRY_CHECK(q_b_.apply(q_a_read, dense(work.q, rows, q_stride)));
  }
  std::int64_t const head = s.nope + s.rope;
  std::int64_t const cached = s.cached_columns();
  std::int64_t const query_row = s.num_heads * cached;
  for (int h = 0; h < s.num_heads; ++h) {
    FERRY_CHECK(absorbed_keys_[static_cast<std::size_t>(h)].apply(
        {work.q + h * head, rows, s.nope, q_stride},
        {work.queries + h * cached, rows, s.kv_lora_rank, query_row}));
  }
  loops().rotate({.from = work.q + s.nope,
                  .from_token = q_stride,
                  .from_head = head,
                  .to = work.queries + s.kv_lora_rank,
                  .to_token = query_row,
                  .to_head = cached,
                  .positions = in.positions.data(),
                  .angles = rope.at(0),
                  .dimensions = s.rope,
                  .tokens = rows,
                  .heads = s.num_heads});
  loops().fill({.from = {work.projected + q_columns, rows, cached, projected},
                .weight = kv_norm_.data(),
                .epsilon = s.epsilon,
                .sequences = in.sequences.data(),
                .positions = in.positions.data(),
                .angles = rope.at(0),
                .latent = s.kv_lora_rank,
                .dimensions = s.rope,
                .cache = cache.row(0, 0),
                .sequence_stride = std::int64_t{cache.positions()} * cache.columns()});
  return {};
}

result<void> attention::apply_block(tokens const& in, deepseek::rope const& rope,
                                    latent_cache& cache, matrix<float> out,
                                    workspace const& work) const {
  FERRY_CHECK(project(in, rope, cache, work));
  attention_shape const& s = shape_;
  std::int64_t const rows = in.x.rows;
  std::int64_t const attended_row = std::int64_t{s.num_heads} * s.kv_lora_rank;
  loops().attend({.queries = work.queries,
                  .cache = cache.row(0, 0),
                  .sequence_stride = std::int64_t{cache.positions()} * cache.columns(),
                  .sequences = in.sequences.data(),
                  .positions = in.positions.data(),
                  .tokens = rows,
                  .heads = s.num_heads,
                  .columns = s.cached_columns(),
                  .latent = s.kv_lora_rank,
                  .scale = s.softmax_scale,
                  .scores = work.scores,
                  .out = work.attended});
  std::int64_t const value_row = std::int64_t{s.num_heads} * s.v;
  for (int h = 0; h < s.num_heads; ++h) {
    FERRY_CHECK(values_[static_cast<std::size_t>(h)].apply(
        {work.attended + std::int64_t{h} * s.kv_lora_rank, rows, s.kv_lora_rank, attended_row},
        {work.values + std::int64_t{h} * s.v, rows, s.v, value_row}));
  }
  return output_.apply(dense<float const>(work.values, rows, value_row), out);
}

result<void> attention::apply(tokens const& in, deepseek::rope const& rope, latent_cache& cache,
                              matrix<float> out, std::span<float> scratch) const {
  FERRY_CHECK(check(in, rope, cache));
  if (rope.dimensions() != shape_.rope || cache.columns() != shape_.cached_columns()) {
    return fail(error_code::invalid_argument,
                "rope of {} and cache rows of {} columns, {} and {} are needed", rope.dimensions(),
                cache.columns(), shape_.rope, shape_.cached_columns());
  }
  if (scratch.size() < scratch_size(cache.positions())) {
    return fail(error_code::invalid_argument, "scratch of {} elements, {} are needed",
                scratch.size(), scratch_size(cache.positions()));
  }
  workspace const work = divide(scratch);
  for (std::int64_t row = 0; row < in.x.rows; row += linear::most_rows) {
    std::int64_t const rows = std::min<std::int64_t>(linear::most_rows, in.x.rows - row);
    auto const first = static_cast<std::size_t>(row);
    auto const count = static_cast<std::size_t>(rows);
    FERRY_CHECK(apply_block({{in.x[row], rows, in.x.columns, in.x.row_stride},
                             in.sequences.subspan(first, count),
                             in.positions.subspan(first, count)},
                            rope, cache, {out[row], rows, out.columns, out.row_stride}, work));
  }
  return {};
}

}  // namespace ferry::deepseek
