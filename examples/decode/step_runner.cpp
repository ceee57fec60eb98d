// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "step_runner.hpp"

#include <algorithm>
#include <thread>

namespace ferry::decode {

result<step_runner> step_runner::make(deepseek::model& model, group const& ranks,
                                      step_options const& options) {
  step_runner r(model, ranks, options);
  bool const splits = options.most_microbatches() > 1;
  // Two queues with a thread each, so that one communicates while the other computes.
  queue compute, communication;
  if (splits) {
    FERRY_TRY(compute, queue::cpu_stream());
    FERRY_TRY(communication, queue::cpu_stream());
  }
  FERRY_TRY(overlap whole,
            overlap::make(ranks, compute, splits ? communication : compute, {.microbatches = 1}));
  r.whole_.emplace(std::move(whole));
  if (splits) {
    FERRY_TRY(overlap split, overlap::make(ranks, compute, communication,
                                           {.microbatches = options.most_microbatches(),
                                            .driver = options.driver}));
    r.split_.emplace(std::move(split));
  }
  if (options.traced_spans > 0) {
    r.recorder_ = std::make_unique<stage_recorder>(model.stages(), options.traced_spans);
    r.whole_->watch(r.recorder_.get());
    if (r.split_) r.split_->watch(r.recorder_.get());
  }
  return r;
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

result<void> step_runner::run(deepseek::token_batch const& batch, matrix<float> logits) {
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
  if (recorder_) recorder_->begin_step(steps_);
  ++steps_;
  overlapped_ += step.overlapped;
  FERRY_CHECK(put(step.overlapped));
  FERRY_CHECK(model_->wait(whole_->compute()));
  for (int m = 0, row = 0; m < step.microbatches; ++m) {
    matrix<float const> const own = model_->logits(m);
    for (std::int64_t i = 0; i < own.rows; ++i, ++row)
      std::copy_n(own[i], own.columns, logits[row]);
  }
  return {};
}

result<void> step_runner::forward(deepseek::token_batch const& batch, matrix<float> logits) {
  return model_->forward(whole_->compute(), batch, logits);
}

}  // namespace ferry::decode
