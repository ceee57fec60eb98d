// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/moe_layer.hpp>

#include "base/fail.hpp"
#include "deepseek/row_loops.hpp"
#include "deepseek/stopwatch.hpp"

#include <algorithm>
#include <new>

namespace ferry::deepseek {
namespace {

std::size_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

const_tensor as_tensor(matrix<float const> m) {
  return {reinterpret_cast<std::byte const*>(m.data), m.rows, m.columns, dtype::f32,
          m.row_stride * static_cast<std::int64_t>(sizeof(float))};
}

tensor as_tensor(matrix<float> m) {
  return {reinterpret_cast<std::byte*>(m.data), m.rows, m.columns, dtype::f32,
          m.row_stride * static_cast<std::int64_t>(sizeof(float))};
}

matrix<float const> read_only(matrix<float> m) {
  return {m.data, m.rows, m.columns, m.row_stride};
}

}  // namespace

moe_workspace::moe_workspace(gate_rule const& rule, int hidden, int max_tokens, std::size_t scratch)
    : topk_(rule.topk),
      num_experts_(rule.num_experts),
      hidden_(hidden),
      choices_(product(max_tokens, rule.topk)),
      weights_(product(max_tokens, rule.topk)),
      logits_(product(max_tokens, rule.num_experts)),
      shared_(product(max_tokens, hidden)),
      scratch_(scratch) {}

matrix<std::int32_t> moe_workspace::choices(std::int64_t tokens) {
  return dense(choices_.data(), tokens, topk_);
}
matrix<float> moe_workspace::weights(std::int64_t tokens) {
  return dense(weights_.data(), tokens, topk_);
}
matrix<float> moe_workspace::logits(std::int64_t tokens) {
  return dense(logits_.data(), tokens, num_experts_);
}
matrix<float> moe_workspace::shared(std::int64_t tokens) {
  return dense(shared_.data(), tokens, hidden_);
}

result<matrix<float>> moe_workspace::expert_rows(std::int64_t capacity) {
  if (capacity > capacity_) {
    // Not cleared: of a layout's capacity only the rows that arrive are ever touched.
    expert_rows_.reset(new (std::nothrow) float[product(capacity, hidden_)]);
    if (!expert_rows_) {
      capacity_ = 0;
      return fail(error_code::out_of_memory, "no memory for the results of {} expert rows of {}",
                  capacity, hidden_);
    }
    capacity_ = capacity;
  }
  return dense(expert_rows_.get(), capacity, hidden_);
}

result<moe_layer> moe_layer::make(deepseek::gate gate, deepseek::experts local,
                                  std::optional<mlp> shared, int layer_index) {
  if (shared && shared->hidden() != gate.hidden()) {
    return fail(error_code::invalid_argument, "shared experts of hidden size {} and a gate of {}",
                shared->hidden(), gate.hidden());
  }
  moe_layer layer;
  layer.gate_ = std::move(gate);
  layer.local_ = std::move(local);
  layer.shared_ = std::move(shared);
  layer.layer_ = layer_index;
  return layer;
}

std::size_t moe_layer::scratch_size() const {
  return std::max(local_.scratch_size(), shared_ ? shared_->scratch_size() : 0);
}

result<void> moe_layer::route(matrix<float const> x, moe_workspace& work) const {
  return gate_.apply(x, work.logits(x.rows), work.choices(x.rows), work.weights(x.rows));
}

dispatch_input moe_layer::brought(matrix<float const> x, moe_workspace& work,
                                  std::int32_t const* num_tokens) const {
  return {.tokens = as_tensor(x),
          .choices = work.choices(x.rows),
          .weights = read_only(work.weights(x.rows)),
          .num_tokens = num_tokens,
          .layer = layer_};
}

result<void> moe_layer::add_shared(matrix<float const> x, matrix<float> hidden,
                                   moe_workspace& work) const {
  if (!shared_) return {};
  auto const own = work.shared(x.rows);
  FERRY_CHECK(shared_->apply(x, own, work.scratch()));
  loops().add({own, hidden});
  return {};
}

result<void> moe_layer::run_experts(received const& in, matrix<float> expert_rows,
                                    moe_workspace& work) const {
  return local_.apply(in, expert_rows, work.scratch());
}

result<void> moe_layer::apply(queue& q, microbatch& slot, matrix<float const> x,
                              matrix<float> hidden, moe_workspace& work, moe_times* times) const {
  moe_times unused;
  moe_times& t = times != nullptr ? *times : unused;
  stopwatch watch;
  FERRY_CHECK(route(x, work));
  watch.lap(t.gate);
  FERRY_CHECK(slot.dispatch_send(q, brought(x, work, nullptr)));
  watch.lap(t.dispatch);
  if (shared_) {  // while the others' rows are on their way
    FERRY_CHECK(add_shared(x, hidden, work));
    watch.lap(t.shared);
  }
  FERRY_TRY(auto const in, slot.dispatch_receive(q));
  watch.lap(t.dispatch);
  FERRY_TRY(auto const results, work.expert_rows(in.capacity));
  FERRY_CHECK(run_experts(in, results, work));
  watch.lap(t.experts);
  FERRY_CHECK(slot.combine(q, as_tensor(read_only(results)), as_tensor(hidden),
                           as_tensor(read_only(hidden))));
  watch.lap(t.combine);
  return {};
}

}  // namespace ferry::deepseek
