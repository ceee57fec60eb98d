// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One Mixture-of-Experts layer across the ranks of a group.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>
#include <ferry/deepseek/experts.hpp>
#include <ferry/deepseek/gate.hpp>
#include <ferry/deepseek/mlp.hpp>
#include <ferry/exchange.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace ferry::deepseek {

/// Where the time of MoE layers went, in seconds.
struct moe_times {
  double gate = 0;
  double shared = 0;
  double dispatch = 0;  ///< send, and waiting for the others
  double experts = 0;
  double combine = 0;
};

/// What layers work in, one after the other. Holds the last layer's choices.
/// Lifetime used by one thread at a time
class moe_workspace {
 public:
  moe_workspace() = default;
  /// For layers of up to `max_tokens` tokens; every layer that will use it must be in `scratch`.
  moe_workspace(gate_rule const& rule, int hidden, int max_tokens, std::size_t scratch);

  matrix<std::int32_t> choices(std::int64_t tokens);
  matrix<float> weights(std::int64_t tokens);
  matrix<float> logits(std::int64_t tokens);
  matrix<float> shared(std::int64_t tokens);
  /// Room for the experts' results. Grows once, to the layout's capacity.
  /// Errors   out_of_memory
  result<matrix<float>> expert_rows(std::int64_t capacity);
  std::span<float> scratch() { return scratch_; }

 private:
  int topk_ = 0;
  int num_experts_ = 0;
  int hidden_ = 0;
  std::vector<std::int32_t> choices_;
  std::vector<float> weights_;
  std::vector<float> logits_;
  std::vector<float> shared_;
  std::vector<float> scratch_;
  std::unique_ptr<float[]> expert_rows_;
  std::int64_t capacity_ = 0;
};

/// gate -> dispatch -> experts -> combine, with the shared experts' row and the residual added by
/// the combine.
/// Lifetime copies share the weights
class moe_layer {
 public:
  moe_layer() = default;
  /// `layer` is what the exchange calls this layer, where it has several.
  /// Errors   invalid_argument hidden sizes differ
  static result<moe_layer> make(deepseek::gate gate, deepseek::experts local,
                                std::optional<mlp> shared, int layer = 0);

  /// hidden += sum of weighted experts(x) + shared(x). Collective: every rank, also with 0 tokens.
  /// Shapes   x, hidden [n, hidden size]
  /// Order    the sum runs as hidden + shared first, then the experts' own sum is added to that
  /// Errors   those of the microbatch; invalid_argument, internal
  result<void> apply(queue& q, microbatch& slot, matrix<float const> x, matrix<float> hidden,
                     moe_workspace& work, moe_times* times = nullptr) const;

  // The pieces that `apply` is made of, for those who put them on queues: route, then dispatch what
  // `brought` says, add_shared at any time before the combine, run_experts on what came, then
  // combine `expert_rows` into `hidden`, with `hidden` added.

  /// Choices and weights into `work`.
  result<void> route(matrix<float const> x, moe_workspace& work) const;
  /// For up to x.rows tokens, of which `num_tokens` says how many there are; null: all.
  dispatch_input brought(matrix<float const> x, moe_workspace& work,
                         std::int32_t const* num_tokens) const;
  /// hidden += shared(x)
  result<void> add_shared(matrix<float const> x, matrix<float> hidden, moe_workspace& work) const;
  bool has_shared() const { return shared_.has_value(); }
  result<void> run_experts(received const& in, matrix<float> expert_rows,
                           moe_workspace& work) const;

  std::size_t scratch_size() const;
  deepseek::gate const& router() const { return gate_; }
  /// Those of this rank, by slot.
  experts& local_experts() { return local_; }

 private:
  deepseek::gate gate_;
  experts local_;
  std::optional<mlp> shared_;
  int layer_ = 0;
};

}  // namespace ferry::deepseek
