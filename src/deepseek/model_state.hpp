// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a model holds, and the stages that its steps are put on queues by.
#pragma once

#include <ferry/deepseek/model.hpp>

#include "deepseek/device_model.hpp"
#include "deepseek/model_layers.hpp"
#include "deepseek/stopwatch.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace ferry::deepseek {

template <class T>
matrix<T const> read_only(matrix<T> m) {
  return {m.data, m.rows, m.columns, m.row_stride};
}

struct model_batch;

/// One layer of one microbatch: what its stages need when they run. They capture a pointer to it
/// alone, so that putting them allocates nothing.
struct layer_stages {
  model::state* of = nullptr;
  model_batch* batch = nullptr;
  int index = 0;
  model_layer const* layer = nullptr;
  microbatch* slot = nullptr;  ///< of layers with experts
  matrix<float> expert_rows;   ///< once the first step was put
  stopwatch watch;

  result<void> attend();
  result<void> run_dense();
  result<void> route();
  result<void> add_shared();
  result<void> run_experts();
  result<void> finish();
};

/// A microbatch: the tokens that were brought, and all that is computed of them.
struct model_batch {
  std::vector<std::int32_t> ids, sequences, positions;
  std::int32_t count = 0;         ///< read by the kernels, too
  matrix<float> wanted;           ///< where logits go: the caller's, the own, or nowhere
  std::vector<float> own_logits;  ///< [max_tokens, vocab], made when stages are asked for

  std::vector<float> hidden, normalised, attended;  // [max_tokens, hidden]
  std::vector<float> scratch;                       // of attention and dense layers
  moe_workspace moe_work;

  std::vector<std::unique_ptr<layer_stages>> layers;

  matrix<float> x(std::int64_t columns) { return dense(hidden.data(), count, columns); }
  matrix<float> normal(std::int64_t columns) { return dense(normalised.data(), count, columns); }
  matrix<float> block(std::int64_t columns) { return dense(attended.data(), count, columns); }
};

struct model::state {
  state(checkpoint const& weights_, model_config const& config_, group const& ranks_,
        model_options const& options_)
      : weights(weights_), config(config_), ranks(ranks_), options(options_) {}

  result<void> load();
  result<void> make_buffers();
  void make_slots();
  /// What every forward asks, then admit.
  result<void> admit_forward(queue const& q, token_batch const& batch);
  /// Checks all batches before anything is changed, and takes them over.
  result<void> admit(std::span<token_batch const> batches);
  result<void> admit_token(token_batch const& batch, std::size_t i, std::size_t microbatch);
  result<void> embed(std::span<std::int32_t const> ids, matrix<float> to) const;
  result<void> embed_batch(model_batch& b);
  result<void> compute_logits(model_batch& b);
  /// Adds the list of this microbatch to `lists`.
  void make_stages(model_batch& b, int microbatch);
  void add_moe_stages(layer_stages& s, stage_list& to);

  checkpoint weights;
  model_config config;
  group ranks;
  model_options options;
  placement where;  // of the layers that have experts; none if no layer has

  tensor_view embedding;
  rope turning;
  std::vector<model_layer> layers;
  weight_pool common_weights;        ///< of the layers and the head
  std::vector<latent_cache> caches;  // per layer
  std::vector<float> norm;
  linear head;
  std::optional<ferry::exchange> exchange;
  std::unique_ptr<device_model> elsewhere;  // on another device than the CPU, instead of all this

  std::vector<int> lengths;            // per cache slot
  std::vector<int> next_lengths;       // the same while a batch is looked at
  std::vector<std::uint64_t> seen_in;  // per cache slot, the last step with a token of it
  std::vector<std::size_t> seen_by;    // and the microbatch that had it
  std::uint64_t batches = 0;

  std::vector<std::unique_ptr<model_batch>> microbatches;  // none if elsewhere
  std::vector<stage_list> lists;                           // of all microbatches

  model_times times;
  model_observer* observer = nullptr;
  stage_watcher* watcher = nullptr;  // of forwards
};

}  // namespace ferry::deepseek
