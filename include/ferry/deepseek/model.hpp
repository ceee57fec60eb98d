// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A DeepSeek-V2 or -V3 model whose experts are spread over the ranks of a group.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>
#include <ferry/deepseek/checkpoint.hpp>
#include <ferry/deepseek/linear.hpp>
#include <ferry/deepseek/model_config.hpp>
#include <ferry/deepseek/moe_layer.hpp>
#include <ferry/exchange.hpp>
#include <ferry/overlap.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace ferry::deepseek {

/// What a user chooses when loading a model. Equal on every rank.
struct model_options {
  /// f32, or bf16: weights and the inputs of products in bf16, everything else in f32. The gate
  /// computes in f32 always. fp8 weights are turned into this type when they are loaded.
  dtype compute = dtype::f32;
  ferry::wire wire = wire::f32;          ///< of tokens on their way to the experts; not opaque
  ferry::wire combine_wire = wire::f32;  ///< of results on their way home
  ferry::reduction reduction = reduction::per_rank;
  ferry::layout layout = layout::grouped;
  int max_tokens = 64;       ///< most tokens of one forward on one rank
  int max_sequences = 64;    ///< cache slots of this rank
  int max_positions = 4096;  ///< of a sequence
  /// Rounds the input of every fp8 weight (but kv_b_proj, which is absorbed) to fp8 as well.
  bool quantise_activations = false;
  /// That a step may be split into, 1 to 32; each has slots and buffers. 1 on a device other than
  /// the CPU.
  int microbatches = 1;
  int round_tokens = 0;  ///< tokens of one round of the exchange; 0: max_tokens
  row_calls calls = row_calls::probed;
  /// The rank's device; ranks need the same kind. Elsewhere than on the CPU products are computed
  /// by ferry's own kernel, whose sums have an order of their own.
  device where = {};
};

/// The tokens of one forward: token i is ids[i], at positions[i] of the sequence in cache slot
/// sequences[i].
struct token_batch {
  std::span<std::int32_t const> ids;
  std::span<std::int32_t const> sequences;
  std::span<std::int32_t const> positions;
};

/// Sees what a model computes, between its steps. For tests and pictures; the views are valid
/// during the call only. On a device other than the CPU only `hidden` is called.
class model_observer {
 public:
  virtual ~model_observer() = default;
  /// After the embedding (layer -1) or after a layer: [n, hidden].
  virtual void hidden(int layer, matrix<float const> values);
  /// An attention's output, before it is added.
  virtual void attended(int layer, matrix<float const> values);
  /// A gate's choices and weights: [n, topk].
  virtual void routed(int layer, matrix<std::int32_t const> choices, matrix<float const> weights);
  /// After the final norm: [n, hidden].
  virtual void normalised(matrix<float const> values);
};

/// Where a model's time went, in seconds since it was loaded; all 0 on a device other than the CPU.
struct model_times {
  double embedding = 0;
  double attention = 0;
  double dense = 0;
  moe_times moe;
  double head = 0;
};

/// The rank's part of a model: everything but the experts of other ranks.
/// A token's logits depend on its own sequence alone, to the bit: not on batching, prefill chunks
/// or (with reduction per_choice) the number of ranks.
/// Lifetime keeps checkpoint (whose embedding it reads where it lies), group and exchange alive
class model {
 public:
  /// Loads the weights, own experts [r*E/R, (r+1)*E/R) only, and makes the exchange. Collective.
  /// Errors   malformed_input a tensor is missing, of another shape or type, naming it and both;
  ///          unsupported a storage type that weights cannot have, or several microbatches on a
  ///          device other than the CPU; invalid_argument an option out of its limits;
  ///          out_of_memory; those of make_exchange
  static result<model> load(checkpoint const& weights, model_config const& config,
                            group const& ranks, model_options const& options);

  /// Runs the batch through all layers. Collective: every rank, also with 0 tokens.
  /// Shapes   logits [n, vocab], or no data: not wanted
  /// Order    a sequence's positions come one after the other, over all calls and within one;
  ///          position 0 starts it anew
  ///          on a device other than the CPU it waits until all is done, and `q` is a queue of it
  /// Errors   invalid_state the queue is being captured: that is for `stages`;
  ///          invalid_argument a queue of another device, n > max_tokens, or an id, slot or
  ///          position outside its limits, with nothing sent and no cache changed; those of the
  ///          exchange, after which the caches hold nothing usable
  result<void> forward(queue& q, token_batch const& batch, matrix<float> logits);

  /// Lays out the tokens of a step that is then put on queues by its stages: batch i for microbatch
  /// i, the others empty. What a step needs is read from here when it runs, so that its stages may
  /// be captured once and replayed.
  /// Order    all that was put before has run
  /// Errors   as forward; invalid_state within a capture; invalid_argument also more batches than
  ///          microbatches, or a sequence in
  /// two
  ///          of them; unsupported a device other than the CPU, where a step has no stages
  result<void> bring(std::span<token_batch const> batches);
  /// The stages of each microbatch, for `overlap`: from the embedding to `logits`. Collective: in
  /// the same order on every rank. None on a device other than the CPU: there `forward` runs all.
  /// Order    CPU queues
  /// Lifetime the model's
  std::span<stage_list const> stages() const;
  /// What the stages of a microbatch have computed: [n, vocab] of what was brought.
  matrix<float const> logits(int microbatch) const;
  /// Waits until the stages on `compute` (and all that it waits for) have run.
  /// Errors   what went wrong in them
  result<void> wait(queue& compute);

  exchange_counters counters() const;
  model_times const& times() const;
  model_config const& config() const;
  model_options const& options() const;

  /// Positions of the sequence in cache slot `sequence` so far.
  int length(int sequence) const;
  /// One cached row: latent, then rotated key. For tests; empty on a device other than the CPU.
  std::span<float const> cached(int layer, int sequence, int position) const;
  /// `observer` sees all following forwards; null ends it.
  void observe(model_observer* observer);
  /// `watcher` sees the stages of all following forwards, as those of microbatch 0; null ends it.
  /// It sees none on a device other than the CPU, nor those that `overlap` runs, which has one of
  /// its own.
  void watch(stage_watcher* watcher);

  model(model&&) noexcept;
  model& operator=(model&&) noexcept;
  ~model();

  struct state;

 private:
  explicit model(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace ferry::deepseek
