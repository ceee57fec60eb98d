// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a model directory's config.json says, checked.
#pragma once

#include <ferry/base/result.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::deepseek {

/// How router logits become scores.
enum class scoring : std::uint8_t {
  sigmoid,  ///< each expert by itself
  softmax,  ///< over all experts
};

/// How experts are chosen from scores.
enum class topk_method : std::uint8_t {
  greedy,                ///< the best of all experts
  group_limited_greedy,  ///< the best of the best groups, a group being worth its best score
  noaux_tc,              ///< the same on score + correction bias, a group being worth its two best
};

/// The type that the unquantised weights were saved in.
enum class weight_dtype : std::uint8_t { bf16, fp16, f32 };

/// Rotary embedding stretched beyond the positions that were trained first.
struct yarn {
  double factor = 1;
  std::int64_t original_max_position_embeddings = 4096;
  double beta_fast = 32;
  double beta_slow = 1;
  double mscale = 1;
  double mscale_all_dim = 0;
};

/// A `deepseek_v2` or `deepseek_v3` model. Names are those of config.json, except `num_layers`
/// (num_hidden_layers) and `num_heads` (num_attention_heads).
struct model_config {
  std::string model_type;  ///< "deepseek_v2" or "deepseek_v3"

  int vocab_size = 0;
  int hidden_size = 0;
  int num_layers = 0;
  int num_heads = 0;

  int q_lora_rank = 0;  ///< 0: queries are projected in one piece (q_proj)
  int kv_lora_rank = 0;
  int qk_nope_head_dim = 0;
  int qk_rope_head_dim = 0;  ///< even
  int v_head_dim = 0;

  int intermediate_size = 0;      ///< of the dense layers
  int moe_intermediate_size = 0;  ///< of one expert
  int first_k_dense_replace = 0;
  int moe_layer_freq = 1;
  int n_routed_experts = 0;
  int n_shared_experts = 0;  ///< they act as one MLP of this many times moe_intermediate_size
  int num_experts_per_tok = 0;
  int n_group = 1;
  int topk_group = 1;
  deepseek::scoring scoring_func = scoring::sigmoid;
  deepseek::topk_method topk_method = topk_method::noaux_tc;
  bool norm_topk_prob = true;
  double routed_scaling_factor = 1;

  double rms_norm_eps = 1e-6;
  double rope_theta = 10000;
  std::optional<yarn> rope_scaling;
  int max_position_embeddings = 0;
  bool tie_word_embeddings = false;

  std::optional<int> bos_token_id;
  std::vector<int> eos_token_ids;  ///< any of them ends a sequence; may be empty

  /// Rows and columns that share one scale of an fp8 weight; {0, 0}: weights are not fp8.
  std::array<int, 2> weight_block_size = {0, 0};
  weight_dtype torch_dtype = weight_dtype::bf16;

  bool is_fp8() const { return weight_block_size[0] != 0; }
  bool is_moe_layer(int layer) const {
    return layer >= first_k_dense_replace && layer % moe_layer_freq == 0;
  }
};

/// Reads and checks `directory`/config.json, and generation_config.json where there is one. The end
/// tokens are the latter's if it names any, unless it says to be a copy (`_from_model_config`) and
/// config.json names some too. Fields that a published file may lack take the model type's
/// defaults. Errors   io no such file; malformed_input not JSON, or a field missing, of another
/// type or out
///          of its limits, naming field, value and limit; unsupported another kind of model
result<model_config> load_model_config(std::filesystem::path const& directory);

/// The same from the text of a config.json. `name` stands for the file in messages.
result<model_config> parse_model_config(std::string_view text, std::string_view name);

}  // namespace ferry::deepseek
