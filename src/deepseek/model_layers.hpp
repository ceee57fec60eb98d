// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The layers of a model as a rank holds them, and how they are read from a checkpoint.
#pragma once

#include <ferry/deepseek/attention.hpp>
#include <ferry/deepseek/mlp.hpp>
#include <ferry/deepseek/model.hpp>
#include <ferry/deepseek/moe_layer.hpp>

#include "deepseek/weight_pool.hpp"
#include "deepseek/weight_reader.hpp"

#include <optional>
#include <vector>

namespace ferry::deepseek {

struct model_layer {
  std::vector<float> attention_norm;
  deepseek::attention attention;
  std::vector<float> ffn_norm;
  mlp dense;                     ///< of dense layers
  std::optional<moe_layer> moe;  ///< of the others
};

/// The experts [first, end) that a rank holds.
struct expert_range {
  int first = 0;
  int end = 0;

  static expert_range of_rank(int rank, int ranks, int experts) {
    auto const at = [&](std::int64_t r) { return static_cast<int>(r * experts / ranks); };
    return {at(rank), at(rank + 1)};
  }
};

/// Reads layers one by one; holds f32 copies of one matrix at a time.
class layer_reader {
 public:
  /// `common` notes what all ranks hold alike.
  layer_reader(weight_reader const& reader, model_config const& config,
               model_options const& options, expert_range own, weight_pool& common)
      : reader_(reader), config_(config), options_(options), own_(own), common_(common) {}

  result<model_layer> layer(int index) const;
  /// lm_head, or the embedding where they are tied.
  result<linear> head() const;

 private:
  linear_options products(weight_matrix const& m, weight_pool* pool) const;
  result<attention> attention_of(std::string const& prefix) const;
  result<mlp> mlp_of(std::string const& prefix, int width, weight_pool* pool) const;
  result<moe_layer> moe_of(std::string const& prefix) const;

  weight_reader const& reader_;
  model_config const& config_;
  model_options const& options_;
  expert_range own_;
  weight_pool& common_;
};

}  // namespace ferry::deepseek
