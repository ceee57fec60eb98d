// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The layers of a model in a device's memory.
#pragma once

#include <ferry/deepseek/attention.hpp>
#include <ferry/deepseek/gate.hpp>
#include <ferry/deepseek/model.hpp>

#include "deepseek/device_linear.hpp"
#include "deepseek/model_layers.hpp"

#include <optional>
#include <string>

namespace ferry::deepseek {

/// Groups of gate, up and down; one group, or one per expert.
struct device_mlp {
  device_linear gate_and_up;
  device_linear down;
};

struct device_attention {
  device_linear input;
  device_array<float> q_norm;
  device_linear q_b;
  device_array<float> kv_norm;
  device_linear keys;    ///< a group per head
  device_linear values;  ///< a group per head
  device_linear output;
};

struct device_moe {
  int layer = 0;  ///< among those that have experts
  device_linear router;
  device_array<float> bias;
  device_mlp experts;
  std::optional<device_mlp> shared;
};

struct device_layer {
  device_array<float> attention_norm;
  device_attention attention;
  device_array<float> ffn_norm;
  device_mlp dense;               ///< of dense layers
  std::optional<device_moe> moe;  ///< of the others
};

/// Reads layers one by one into the device's memory.
/// Errors   of all: those of layer_weights.hpp; out_of_memory, device
class device_layer_reader {
 public:
  device_layer_reader(strip_device& on, weight_reader const& reader, model_config const& config,
                      model_options const& options, own_slots own)
      : on_(on), reader_(reader), config_(config), options_(options), own_(own) {}

  result<device_layer> layer(int index) const;
  result<device_linear> head() const;
  result<device_array<float>> vector_of(std::string const& name, std::int64_t size) const;

 private:
  result<device_linear> product(weight_matrix const& m) const;
  result<device_linear> heads(std::vector<float> const& weights, std::int64_t in) const;
  result<device_mlp> mlp_of(std::string const& prefix, int width) const;
  result<device_mlp> experts_of(std::string const& prefix,
                                std::span<std::int32_t const> experts) const;
  result<device_attention> attention_of(std::string const& prefix) const;
  result<device_moe> moe_of(std::string const& prefix, int layer) const;
  linear_options options_for(bool fp8) const;

  strip_device& on_;
  weight_reader const& reader_;
  model_config const& config_;
  model_options const& options_;
  own_slots own_;
};

}  // namespace ferry::deepseek
