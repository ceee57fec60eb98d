// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/model_config.hpp>

#include "base/fail.hpp"
#include "files/json_fields.hpp"
#include "files/json_text.hpp"

namespace ferry::deepseek {
namespace {

using json = nlohmann::json;

// Far above any published model, and low enough that the product of two widths times eight bytes
// cannot overflow 64 bits.
constexpr std::int64_t max_width = 1 << 20;
constexpr std::int64_t max_vocabulary = 1 << 24;
constexpr std::int64_t max_layers = 4096;
constexpr std::int64_t max_heads = 4096;
constexpr std::int64_t max_experts = 1 << 16;
constexpr std::int64_t max_position = 1 << 30;
constexpr std::size_t max_config_bytes = 16 << 20;

int whole(json_fields& fields, std::string_view name, std::int64_t low, std::int64_t high,
          std::optional<std::int64_t> fallback = {}) {
  return static_cast<int>(fields.integer(name, low, high, fallback));
}

/// A field of which only one value is known here.
template <class T>
void only(json_fields& fields, std::string_view name, T const& actual, T const& known) {
  if (actual != known)
    fields.refuse(fail(error_code::unsupported, "{}: {} is {}, only {} is supported",
                       fields.where(), name, actual, known));
}

void read_sizes(json_fields& fields, model_config& c) {
  c.vocab_size = whole(fields, "vocab_size", 1, max_vocabulary);
  c.hidden_size = whole(fields, "hidden_size", 1, max_width);
  c.num_layers = whole(fields, "num_hidden_layers", 1, max_layers);
  c.num_heads = whole(fields, "num_attention_heads", 1, max_heads);
  c.q_lora_rank = whole(fields, "q_lora_rank", 1, max_width, 0);
  c.kv_lora_rank = whole(fields, "kv_lora_rank", 1, max_width);
  c.qk_nope_head_dim = whole(fields, "qk_nope_head_dim", 1, max_width);
  c.qk_rope_head_dim = whole(fields, "qk_rope_head_dim", 2, max_width);
  c.v_head_dim = whole(fields, "v_head_dim", 1, max_width);
  c.intermediate_size = whole(fields, "intermediate_size", 1, max_width);
  c.max_position_embeddings = whole(fields, "max_position_embeddings", 1, max_position);
  if (c.qk_rope_head_dim % 2 != 0)
    fields.refuse(fail(error_code::malformed_input, "{}: qk_rope_head_dim is {}, not even",
                       fields.where(), c.qk_rope_head_dim));
}

scoring read_scoring(json_fields& fields, bool third) {
  auto name = fields.text("scoring_func", third ? "sigmoid" : "softmax");
  if (name == "sigmoid") return scoring::sigmoid;
  if (name != "softmax")
    fields.refuse(fail(error_code::unsupported,
                       "{}: scoring_func is \"{}\", neither sigmoid nor softmax", fields.where(),
                       name));
  return scoring::softmax;
}

topk_method read_topk_method(json_fields& fields, bool third) {
  auto name = fields.text("topk_method", third ? "noaux_tc" : "greedy");
  if (name == "greedy") return topk_method::greedy;
  if (name == "group_limited_greedy") return topk_method::group_limited_greedy;
  if (name != "noaux_tc")
    fields.refuse(fail(error_code::unsupported,
                       "{}: topk_method is \"{}\", none of greedy, group_limited_greedy, noaux_tc",
                       fields.where(), name));
  return topk_method::noaux_tc;
}

/// Limits of routing fields that depend on each other.
result<void> check_routing(model_config const& c, std::string const& where) {
  constexpr auto bad = error_code::malformed_input;
  if (c.num_experts_per_tok > c.n_routed_experts)
    return fail(bad, "{}: num_experts_per_tok is {}, more than n_routed_experts, {}", where,
                c.num_experts_per_tok, c.n_routed_experts);
  if (c.topk_method == topk_method::greedy) return {};
  if (c.n_routed_experts % c.n_group != 0)
    return fail(bad, "{}: n_group is {}, which does not divide n_routed_experts, {}", where,
                c.n_group, c.n_routed_experts);
  if (c.topk_group > c.n_group)
    return fail(bad, "{}: topk_group is {}, more than n_group, {}", where, c.topk_group, c.n_group);
  int of_group = c.n_routed_experts / c.n_group;
  if (c.topk_method == topk_method::noaux_tc && of_group < 2)
    return fail(bad, "{}: n_group is {}, but noaux_tc needs at least 2 of the {} experts a group",
                where, c.n_group, c.n_routed_experts);
  if (c.num_experts_per_tok > c.topk_group * of_group)
    return fail(bad, "{}: num_experts_per_tok is {}, more than the {} experts of topk_group {}",
                where, c.num_experts_per_tok, c.topk_group * of_group, c.topk_group);
  return {};
}

void read_routing(json_fields& fields, model_config& c) {
  bool third = c.model_type == "deepseek_v3";
  if (!fields.find("n_routed_experts"))
    fields.refuse(fail(error_code::unsupported,
                       "{}: no n_routed_experts; a model without experts is not supported",
                       fields.where()));
  c.n_routed_experts = whole(fields, "n_routed_experts", 1, max_experts);
  c.n_shared_experts = whole(fields, "n_shared_experts", 0, 1024, 0);
  c.num_experts_per_tok = whole(fields, "num_experts_per_tok", 1, 32);
  c.moe_intermediate_size = whole(fields, "moe_intermediate_size", 1, max_width);
  c.first_k_dense_replace = whole(fields, "first_k_dense_replace", 0, max_layers, 0);
  c.moe_layer_freq = whole(fields, "moe_layer_freq", 1, max_layers, 1);
  c.n_group = whole(fields, "n_group", 1, max_experts, 1);
  c.topk_group = whole(fields, "topk_group", 1, max_experts, c.n_group);
  c.scoring_func = read_scoring(fields, third);
  c.topk_method = read_topk_method(fields, third);
  c.norm_topk_prob = fields.boolean("norm_topk_prob", third);
  c.routed_scaling_factor = fields.number("routed_scaling_factor", 0, 1e6, third ? 2.5 : 1.0);
  if (!fields.good()) return;
  if (auto done = check_routing(c, fields.where()); !done) fields.refuse(done.error());
}

/// A stretched embedding, or none where `type` is "default".
std::optional<yarn> read_yarn(json_fields& fields) {
  auto type = fields.text("rope_type", fields.text("type", "default"));
  if (type == "default") return {};
  if (type != "yarn") {
    fields.refuse(fail(error_code::unsupported, "{}: type is \"{}\", only yarn is supported",
                       fields.where(), type));
    return {};
  }
  yarn y;
  y.factor = fields.number("factor", 1, 1e6);
  y.original_max_position_embeddings =
      fields.integer("original_max_position_embeddings", 1, max_position);
  y.beta_fast = fields.number("beta_fast", 1e-6, 1e9, 32);
  y.beta_slow = fields.number("beta_slow", 1e-6, 1e9, 1);
  y.mscale = fields.number("mscale", 0, 1e3, 1);
  y.mscale_all_dim = fields.number("mscale_all_dim", 0, 1e3, 0);
  return y;
}

void read_positions(json_fields& fields, model_config& c) {
  c.rms_norm_eps = fields.number("rms_norm_eps", 0, 1, 1e-6);
  c.rope_theta = fields.number("rope_theta", 1 + 1e-6, 1e12, 10000);
  only(fields, "rope_interleave", fields.boolean("rope_interleave", true), true);
  auto* scaling = fields.find("rope_scaling");
  // Newer files keep theta and scaling together under this name.
  if (!scaling) scaling = fields.find("rope_parameters");
  if (!scaling) return;
  if (!scaling->is_object()) return fields.wrong("rope_scaling", "an object or null", *scaling);
  json_fields inner(*scaling, fields.where() + ": rope_scaling");
  c.rope_theta = inner.number("rope_theta", 1 + 1e-6, 1e12, c.rope_theta);
  c.rope_scaling = read_yarn(inner);
  if (auto done = inner.outcome(); !done) fields.refuse(done.error());
}

void read_quantization(json_fields& fields, model_config& c) {
  auto* quantization = fields.find("quantization_config");
  if (!quantization) return;
  if (!quantization->is_object())
    return fields.wrong("quantization_config", "an object", *quantization);
  json_fields inner(*quantization, fields.where() + ": quantization_config");
  only<std::string>(inner, "quant_method", inner.text("quant_method"), "fp8");
  only<std::string>(inner, "fmt", inner.text("fmt", "e4m3"), "e4m3");
  only<std::string>(inner, "activation_scheme", inner.text("activation_scheme", "dynamic"),
                    "dynamic");
  auto* block = inner.find("weight_block_size");
  bool two = block && block->is_array() && block->size() == 2 && (*block)[0].is_number_integer() &&
             (*block)[1].is_number_integer();
  if (!two) {
    inner.wrong("weight_block_size", "two whole numbers", block ? *block : json());
  } else {
    for (std::size_t i = 0; i < 2; ++i) {
      json one = {{"weight_block_size", (*block)[i]}};
      json_fields entry(one, inner.where());
      c.weight_block_size[i] = whole(entry, "weight_block_size", 1, max_width);
      if (auto done = entry.outcome(); !done) inner.refuse(done.error());
    }
  }
  if (auto done = inner.outcome(); !done) fields.refuse(done.error());
}

void read_tokens(json_fields& fields, model_config& c) {
  if (fields.find("bos_token_id"))
    c.bos_token_id = whole(fields, "bos_token_id", 0, c.vocab_size - 1);
  auto* end = fields.find("eos_token_id");
  if (!end) return;
  json list = end->is_array() ? *end : json::array({*end});
  if (list.size() > 1024) return fields.wrong("eos_token_id", "at most 1024 ids", *end);
  for (auto const& id : list) {
    json one = {{"eos_token_id", id}};
    json_fields entry(one, fields.where());
    c.eos_token_ids.push_back(whole(entry, "eos_token_id", 0, c.vocab_size - 1));
    if (auto done = entry.outcome(); !done) fields.refuse(done.error());
  }
}

weight_dtype read_dtype(json_fields& fields) {
  auto name = fields.text("torch_dtype", fields.text("dtype", "bfloat16"));
  if (name == "bfloat16") return weight_dtype::bf16;
  if (name == "float16") return weight_dtype::fp16;
  if (name != "float32")
    fields.refuse(fail(error_code::unsupported,
                       "{}: torch_dtype is \"{}\", none of bfloat16, float16, float32",
                       fields.where(), name));
  return weight_dtype::f32;
}

result<model_config> read_config(json const& document, std::string_view name) {
  if (!document.is_object())
    return fail(error_code::malformed_input, "{}: not a JSON object", name);
  json_fields fields(document, std::string(name));
  model_config c;
  c.model_type = fields.text("model_type");
  FERRY_CHECK(fields.outcome());
  if (c.model_type != "deepseek_v2" && c.model_type != "deepseek_v3")
    return fail(error_code::unsupported,
                "{}: model_type is \"{}\", neither deepseek_v2 nor deepseek_v3", name,
                c.model_type);
  only<std::string>(fields, "hidden_act", fields.text("hidden_act", "silu"), "silu");
  only(fields, "attention_bias", fields.boolean("attention_bias", false), false);
  only(fields, "mlp_bias", fields.boolean("mlp_bias", false), false);
  read_sizes(fields, c);
  read_routing(fields, c);
  read_positions(fields, c);
  read_quantization(fields, c);
  c.tie_word_embeddings = fields.boolean("tie_word_embeddings", false);
  c.torch_dtype = read_dtype(fields);
  if (fields.good()) read_tokens(fields, c);
  FERRY_CHECK(fields.outcome());
  return c;
}

}  // namespace

result<model_config> parse_model_config(std::string_view text, std::string_view name) {
  FERRY_TRY(auto document, parse_json(text, name));
  return read_config(document, name);
}

result<model_config> load_model_config(std::filesystem::path const& directory) {
  auto file = directory / "config.json";
  FERRY_TRY(auto text, read_text_file(file, max_config_bytes));
  FERRY_TRY(auto config, parse_model_config(text, file.string()));
  auto generation = directory / "generation_config.json";
  if (!is_in_directory(generation)) return config;
  FERRY_TRY(auto more, read_text_file(generation, max_config_bytes));
  FERRY_TRY(auto document, parse_json(more, generation.string()));
  if (!document.is_object())
    return fail(error_code::malformed_input, "{}: not a JSON object", generation.string());
  json_fields fields(document, generation.string());
  model_config generating;
  generating.vocab_size = config.vocab_size;
  read_tokens(fields, generating);
  bool is_copy = fields.boolean("_from_model_config", false);
  FERRY_CHECK(fields.outcome());
  if (!config.bos_token_id) config.bos_token_id = generating.bos_token_id;
  // A file that says it was derived from config.json adds to it, but does not overrule it.
  if (!generating.eos_token_ids.empty() && (config.eos_token_ids.empty() || !is_copy))
    config.eos_token_ids = std::move(generating.eos_token_ids);
  return config;
}

}  // namespace ferry::deepseek
