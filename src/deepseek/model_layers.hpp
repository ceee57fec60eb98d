// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The layers of a model as a rank holds them, and how they are read from a checkpoint.
#pragma once

#include <ferry/balance/placement.hpp>
#include <ferry/deepseek/attention.hpp>
#include <ferry/deepseek/mlp.hpp>
#include <ferry/deepseek/model.hpp>
#include <ferry/deepseek/moe_layer.hpp>

#include "deepseek/weight_pool.hpp"
#include "deepseek/weight_reader.hpp"

#include <optional>
#include <span>
#include <vector>

namespace ferry::deepseek {

struct model_layer {
  std::vector<float> attention_norm;
  deepseek::attention attention;
  std::vector<float> ffn_norm;
  mlp dense;                     ///< of dense layers
  std::optional<moe_layer> moe;  ///< of the others
};

/// The experts in a rank's slots. Layers are those that have experts, from 0.
struct own_slots {
  placement const& where;
  int rank = 0;

  std::span<std::int32_t const> of_layer(int layer) const {
    return where.layer(layer).subspan(static_cast<std::size_t>(where.first_slot(rank)),
                                      static_cast<std::size_t>(where.slots_of(rank)));
  }
};

/// How many of a model's layers before `index` have experts.
int moe_layers_before(model_config const& config, int index);

/// Where the experts of the layers that have any are: options.experts_at, or contiguous.
/// Errors   invalid_argument a placement of other layers, experts or ranks
result<placement> experts_of(model_config const& config, model_options const& options, int ranks);

/// Reads layers one by one; holds f32 copies of one matrix at a time.
class layer_reader {
 public:
  /// `common` notes what all ranks hold alike.
  layer_reader(weight_reader const& reader, model_config const& config,
               model_options const& options, own_slots own, weight_pool& common)
      : reader_(reader), config_(config), options_(options), own_(own), common_(common) {}

  result<model_layer> layer(int index) const;
  /// lm_head, or the embedding where they are tied.
  result<linear> head() const;

 private:
  linear_options products(weight_matrix const& m, weight_pool* pool) const;
  result<attention> attention_of(std::string const& prefix) const;
  result<mlp> mlp_of(std::string const& prefix, int width, weight_pool* pool) const;
  result<moe_layer> moe_of(std::string const& prefix, int layer) const;

  weight_reader const& reader_;
  model_config const& config_;
  model_options const& options_;
  own_slots own_;
  weight_pool& common_;
};

}  // namespace ferry::deepseek
