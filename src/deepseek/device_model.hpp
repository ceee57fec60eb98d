// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A model on a device other than the CPU: weights, caches and all that a step needs lie in its
/// memory, and a forward is a run of kernels on its queue.
#pragma once

#include <ferry/deepseek/model.hpp>
#include <ferry/deepseek/rope.hpp>

#include "deepseek/device_layers.hpp"
#include "deepseek/host_experts.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace ferry::deepseek {

/// What becomes of a step's logits.
struct wanted_logits {
  matrix<float> host = {};  ///< where they are copied to; no data: nowhere
  bool stay = false;        ///< they are computed all the same
};

class device_model {
 public:
  /// Everything but the experts' own buffers, whose size the first step tells.
  /// Errors   those of model::load
  static result<std::unique_ptr<device_model>> load(checkpoint const& weights,
                                                    model_config const& config, group const& ranks,
                                                    model_options const& options,
                                                    placement const& where);

  /// A batch that the host has checked. Returns when all is done.
  /// Shapes   host [n, vocab]
  /// Errors   those of the exchange; invalid_argument a queue of another device; device; timeout
  result<void> forward(queue& q, ferry::exchange* exchange, token_batch const& batch,
                       wanted_logits logits, model_observer* observer);
  /// Who computes dense products.
  char const* products() const { return on_.library() ? on_.library()->name() : "ferry"; }
  /// Those of the last step, in the device's memory: [n, vocab].
  matrix<float const> logits() const {
    return dense<float const>(at_.logits.data(), tokens_, std::int64_t{config_.vocab_size});
  }

  /// As model::store_of_experts; borrows the model.
  result<std::unique_ptr<expert_store>> store_of_experts(expert_form const& form,
                                                         int spare_slots) const;

 private:
  struct staging_arrays {
    device_array<float> values;
    device_array<bf16> codes;
    std::int64_t elements = 0;

    product_staging view() const { return {values.data(), codes.data(), elements}; }
  };
  struct buffers {
    device_array<std::int32_t> step;  // [3, max_tokens]: ids, sequences, positions
    device_array<float> hidden, normalised, block;
    device_array<float> projected, q, queries, attended, values, scores;
    device_array<float> inner, gated;  // of dense and shared layers
    device_array<float> logits;
    device_array<float> router_logits, weights, choice_scratch;
    device_array<std::int32_t> choices;
    device_array<float> arrived, expert_inner, expert_gated, expert_rows;  // [capacity, ...]
    staging_arrays staging, expert_staging;
  };

  device_model(strip_device on, model_config const& config, model_options const& options,
               std::chrono::milliseconds timeout)
      : on_(std::move(on)), config_(config), options_(options), timeout_(timeout) {}

  result<void> load_weights(checkpoint const& weights, own_slots own);
  result<void> make_buffers();
  result<void> make_expert_buffers(std::int64_t capacity);
  result<staging_arrays> make_staging(std::int64_t elements) const;
  result<void> run_all(queue& q, ferry::exchange* exchange, token_batch const& batch,
                       wanted_logits logits, model_observer* observer);
  result<void> bring(queue& q, token_batch const& batch);

  result<void> embed(queue& q);
  result<void> normalise(queue& q, float const* from, std::int64_t stride,
                         device_array<float> const& weight, std::int64_t columns, float* to) const;
  result<void> attend_layer(queue& q, device_layer const& layer, float* cache);
  result<void> project(queue& q, device_attention const& a, float* cache);
  result<void> feed(queue& q, device_mlp const& part, float const* x, float* y, std::int64_t width);
  result<void> moe(queue& q, device_moe const& layer, microbatch& slot);
  result<void> experts(queue& q, device_moe const& layer, received const& in);
  result<void> run_layer(queue& q, int index, ferry::exchange* exchange);
  result<void> finish(queue& q, ferry::exchange* exchange) const;

  template <class T>
  result<std::vector<T>> shown(queue& q, T const* from, std::int64_t size) const;

  std::int32_t const* ids() const { return at_.step.data(); }
  std::int32_t const* sequences() const { return at_.step.data() + options_.max_tokens; }
  std::int32_t const* positions() const { return at_.step.data() + 2 * options_.max_tokens; }
  product_staging staging() const { return at_.staging.view(); }

  strip_device on_;
  model_config config_;
  model_options options_;
  std::chrono::milliseconds timeout_;
  attention_shape shape_;
  gate_rule rule_;

  ferry::wire embedding_format_ = wire::f32;
  std::int64_t embedding_row_bytes_ = 0;
  device_array<std::byte> embedding_;
  device_array<float> angles_;
  std::vector<device_layer> layers_;
  std::vector<device_array<float>> caches_;
  device_array<float> norm_;
  device_linear head_;
  device_memory upload_;  // pinned, [3, max_tokens]
  buffers at_;
  std::int64_t capacity_ = -1;
  std::int64_t tokens_ = 0;  // of the step that runs
};

}  // namespace ferry::deepseek
