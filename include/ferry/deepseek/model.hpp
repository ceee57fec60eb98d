// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A DeepSeek-V2 or -V3 model whose experts are spread over the ranks of a group.
#pragma once

#include <ferry/balance/expert_store.hpp>
#include <ferry/balance/placement.hpp>
#include <ferry/balance/replicas.hpp>
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
#include <optional>
#include <span>

namespace ferry::deepseek {

/// Who computes the products of dense weights on a device other than the CPU. Those of experts,
/// whose rows are counted on the device, are computed by ferry's own kernel always.
enum class product_kernels : std::uint8_t {
  automatic,  ///< the vendor's library where it was found, else ferry's own kernel
  portable,   ///< ferry's own kernel: the same bits on every device
  vendor,     ///< hipBLASLt or cuBLASLt
};

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
  /// Ranks of one machine keep the packed weights of attention, dense layers, shared experts and
  /// the head once, in a window of one of them. On the CPU.
  bool share_weights = true;
  /// Which expert each slot holds, in the layers that have experts or in all layers; none:
  /// contiguous.
  std::optional<placement> experts_at = {};
  replica_choice replicas = replica_choice::hash;
  int sampled_tokens = 0;  ///< as exchange_options
  /// The rank's device; ranks need the same kind.
  device where = {};
  product_kernels products = product_kernels::automatic;
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
  /// Loads the weights, of the experts those in the own slots only, and makes the exchange.
  /// Collective.
  /// Errors   malformed_input a tensor is missing, of another shape or type, naming it and both;
  ///          unsupported a storage type that weights cannot have, several microbatches on a
  ///          device other than the CPU, or a vendor's products where there is no such library;
  ///          invalid_argument an option out of its limits; out_of_memory; those of make_exchange
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
  /// The same, but the logits stay where they were computed: [n, vocab] in memory of
  /// `options().where`, for token_sampler.
  /// Lifetime of the logits: until the model's next step
  result<matrix<float const>> forward(queue& q, token_batch const& batch);

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
  /// What carries tokens to experts, for counters and tables; null where no layer has experts. Its
  /// layers are those that have experts, from 0.
  ferry::exchange* expert_exchange();
  /// The experts of this rank, as a migration moves them. The exchange's tables are not touched.
  /// Lifetime borrows the model
  /// Errors   invalid_argument fewer than 1 spare slot; invalid_state no layer has experts;
  ///          out_of_memory, device
  result<std::unique_ptr<expert_store>> store_of_experts(int spare_slots);
  /// Where the experts are, or were when the model was loaded if a migration has moved them.
  placement const& experts_at() const;
  model_times const& times() const;
  /// Who computes dense products: "oneDNN", "ferry", or the vendor's library by its name.
  char const* products() const;
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
