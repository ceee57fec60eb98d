// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "step_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace ferry::decode {

result<void> check_steps(step_options const& options, device const& where) {
  if (where.kind() == device_kind::cpu) return {};
  struct {
    bool asked;
    char const* what;
  } const all[] = {{options.graph, "--graph"},
                   {options.microbatches != 1, "--microbatches other than 1"},
                   {options.traced_spans > 0, "--trace and --timeline"}};
  for (auto const& one : all)
    if (one.asked)
      return error{error_code::unsupported,
                   fmt::format("{} on {}: only the CPU runs a step as stages; leave it out, or "
                               "give --device cpu",
                               one.what, where.name())};
  return {};
}

result<step_runner> step_runner::make(deepseek::model& model, group const& ranks,
                                      step_options const& options) {
  device const& where = model.options().where;
  FERRY_CHECK(check_steps(options, where));
  step_runner r(model, ranks, options);
  if (where.kind() != device_kind::cpu) {
    FERRY_TRY(r.compute_, queue::on(where));
    return r;
  }
  FERRY_CHECK(r.make_overlaps());
  return r;
}

result<void> step_runner::make_overlaps() {
  bool const splits = options_.most_microbatches() > 1;
  // Two queues with a thread each, so that one communicates while the other computes.
  queue communication = compute_;
  if (splits) {
    FERRY_TRY(compute_, queue::cpu_stream());
    FERRY_TRY(communication, queue::cpu_stream());
  }
  FERRY_TRY(overlap whole, overlap::make(ranks_, compute_, communication, {.microbatches = 1}));
  whole_.emplace(std::move(whole));
  if (splits) {
    FERRY_TRY(overlap split, overlap::make(ranks_, compute_, communication,
                                           {.microbatches = options_.most_microbatches(),
                                            .driver = options_.driver}));
    split_.emplace(std::move(split));
  }
  if (options_.traced_spans > 0) {
    recorder_ = std::make_unique<stage_recorder>(model_->stages(), options_.traced_spans);
    whole_->watch(recorder_.get());
    if (split_) split_->watch(recorder_.get());
  }
  return {};
}

bool step_runner::wants_overlap(int tokens) const {
  if (options_.microbatches != 0) return true;
  deepseek::model_config const& c = model_->config();
  step_shape shape;
  shape.tokens = tokens;
  shape.moe_layers = 0;
  for (int i = 0; i < c.num_layers; ++i) shape.moe_layers += c.is_moe_layer(i);
  shape.experts = c.n_routed_experts;
  shape.topk = c.num_experts_per_tok;
  shape.hidden = c.hidden_size;
  shape.expert_width = c.moe_intermediate_size;
  shape.groups = std::max(1, c.n_group);
  shape.kept_groups = std::max(1, c.topk_group);
  shape.weight_bytes = model_->options().compute == dtype::f32 ? 4 : 2;
  shape.dispatch_row_bytes = shape.combine_row_bytes = c.hidden_size * shape.weight_bytes;
  shape.other_compute_s = 0;
  return overlap_pays(shape,
                      step_hardware::cpu(ranks_.ranks_on_this_machine(),
                                         static_cast<int>(std::thread::hardware_concurrency())))
      .pays;
}

result<void> step_runner::put(bool split) {
  overlap& by = split ? *split_ : *whole_;
  auto const lists = model_->stages().first(split ? model_->stages().size() : 1);
  if (!options_.graph) return by.run(lists);
  std::optional<graph>& g = split ? split_graph_ : whole_graph_;
  if (!g) {
    FERRY_TRY(graph made, capture(by.compute(), [&] { return by.run(lists); }));
    g = std::move(made);
  }
  return g->launch(by.compute());
}

result<matrix<float const>> step_runner::run(deepseek::token_batch const& batch) {
  if (!whole_) return forward(batch);
  auto const tokens = static_cast<int>(batch.ids.size());
  agreed_step step{.padded = tokens};
  if (split_) {
    FERRY_TRY(step, split_->agree(tokens, wants_overlap(tokens), model_->stages()));
  }
  std::vector<deepseek::token_batch> parts;
  for (int m = 0; m < step.microbatches; ++m) {
    auto const first = static_cast<std::size_t>(step.first_of(m, tokens));
    auto const count = static_cast<std::size_t>(step.tokens_of(m, tokens));
    parts.push_back({batch.ids.subspan(first, count), batch.sequences.subspan(first, count),
                     batch.positions.subspan(first, count)});
  }
  FERRY_CHECK(model_->bring(parts));
  if (recorder_) recorder_->begin_step("decode", steps_);
  ++steps_;
  overlapped_ += step.overlapped;
  FERRY_CHECK(put(step.overlapped));
  FERRY_CHECK(model_->wait(compute_));
  if (step.microbatches == 1) return model_->logits(0);
  logits_.clear();
  for (int m = 0; m < step.microbatches; ++m) {
    matrix<float const> const own = model_->logits(m);
    logits_.insert(logits_.end(), own.data, own.data + own.rows * own.columns);
  }
  return dense<float const>(logits_.data(), tokens, model_->config().vocab_size);
}

result<matrix<float const>> step_runner::forward(deepseek::token_batch const& batch) {
  if (!recorder_) return model_->forward(compute_, batch);
  recorder_->begin_step("prefill", prefills_++);
  model_->watch(recorder_.get());
  auto done = model_->forward(compute_, batch);
  model_->watch(nullptr);
  return done;
}

}  // namespace ferry::decode
