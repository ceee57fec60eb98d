// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How a decode step is run: plainly, as a graph, as overlapped microbatches, or as both.
#pragma once

#include "step_trace.hpp"

#include <ferry/deepseek/model.hpp>
#include <ferry/exec/graph.hpp>
#include <ferry/ferry.hpp>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace ferry::decode {

struct step_options {
  bool graph = false;
  int microbatches = 1;  ///< 0: overlap_pays decides, step by step
  overlap_driver driver = overlap_driver::interleaved;
  std::size_t traced_spans = 0;  ///< room for so many; 0: nothing is recorded

  /// That the model must be made for.
  int most_microbatches() const { return microbatches == 0 ? 2 : microbatches; }
};

/// Whether steps can be run like that on `where`. Stages, of which graphs, microbatches and traces
/// are made, exist on the CPU alone.
/// Errors   unsupported naming the option and the device
result<void> check_steps(step_options const& options, device const& where);

/// Runs steps of decode, each token a sequence of its own.
class step_runner {
 public:
  /// Errors   those of check_steps, queue::on and overlap::make
  static result<step_runner> make(deepseek::model& model, group const& ranks,
                                  step_options const& options);

  /// Collective. Returns logits [n, vocab], row i of token i, in memory of the model's device.
  /// Lifetime of the logits: until the next step
  result<matrix<float const>> run(deepseek::token_batch const& batch);
  /// For steps that are not decode: one piece, on the queue for compute.
  result<matrix<float const>> forward(deepseek::token_batch const& batch);

  queue& compute() { return compute_; }

  /// Null where nothing is recorded.
  trace const* recorded() const { return recorder_ ? &recorder_->recorded() : nullptr; }
  /// Steps that ran as more than one microbatch.
  int overlapped_steps() const { return overlapped_; }

 private:
  step_runner(deepseek::model& model, group const& ranks, step_options const& options)
      : model_(&model), ranks_(ranks), options_(options) {}
  bool wants_overlap(int tokens) const;
  result<void> make_overlaps();
  result<void> put(bool split);

  deepseek::model* model_;
  group ranks_;
  step_options options_;
  queue compute_;
  std::optional<overlap> whole_, split_;  // on the CPU
  std::optional<graph> whole_graph_, split_graph_;
  std::unique_ptr<stage_recorder> recorder_;
  std::vector<float> logits_;  // of steps that were split
  int prefills_ = 0, steps_ = 0, overlapped_ = 0;
};

}  // namespace ferry::decode
