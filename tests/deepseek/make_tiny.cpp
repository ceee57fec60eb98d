// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Writes the weights of a small random model, so that the repository need not hold them.
///
/// usage: ferry_make_tiny DIRECTORY SEED [SHARDS]
///
/// DIRECTORY holds config.json. With one shard (the default) the file is model.safetensors; an
/// index is written either way.

#include <ferry/deepseek/model_config.hpp>

#include "deepseek/deterministic_tensors.hpp"
#include "files/safetensors_writer.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <numeric>

namespace ferry::test {
namespace {

using deepseek::model_config;
using shape = std::vector<std::int64_t>;

enum class role { embedding, head, linear, norm, bias };

using visitor = std::function<void(std::string const& name, shape const&, role)>;

void visit_attention(model_config const& c, std::string const& at, visitor const& visit) {
  std::int64_t queries = c.num_heads * (c.qk_nope_head_dim + c.qk_rope_head_dim);
  if (c.q_lora_rank) {
    visit(at + "q_a_proj.weight", {c.q_lora_rank, c.hidden_size}, role::linear);
    visit(at + "q_a_layernorm.weight", {c.q_lora_rank}, role::norm);
    visit(at + "q_b_proj.weight", {queries, c.q_lora_rank}, role::linear);
  } else {
    visit(at + "q_proj.weight", {queries, c.hidden_size}, role::linear);
  }
  visit(at + "kv_a_proj_with_mqa.weight", {c.kv_lora_rank + c.qk_rope_head_dim, c.hidden_size},
        role::linear);
  visit(at + "kv_a_layernorm.weight", {c.kv_lora_rank}, role::norm);
  visit(at + "kv_b_proj.weight",
        {c.num_heads * (c.qk_nope_head_dim + c.v_head_dim), c.kv_lora_rank}, role::linear);
  visit(at + "o_proj.weight", {c.hidden_size, c.num_heads * c.v_head_dim}, role::linear);
}

void visit_mlp(model_config const& c, std::string const& at, int width, visitor const& visit) {
  visit(at + "gate_proj.weight", {width, c.hidden_size}, role::linear);
  visit(at + "up_proj.weight", {width, c.hidden_size}, role::linear);
  visit(at + "down_proj.weight", {c.hidden_size, width}, role::linear);
}

void visit_experts(model_config const& c, std::string const& at, visitor const& visit) {
  visit(at + "gate.weight", {c.n_routed_experts, c.hidden_size}, role::linear);
  if (c.topk_method == deepseek::topk_method::noaux_tc)
    visit(at + "gate.e_score_correction_bias", {c.n_routed_experts}, role::bias);
  for (int e = 0; e < c.n_routed_experts; ++e)
    visit_mlp(c, at + "experts." + std::to_string(e) + ".", c.moe_intermediate_size, visit);
  visit_mlp(c, at + "shared_experts.", c.moe_intermediate_size * c.n_shared_experts, visit);
}

/// Every tensor of the model, in the file's order.
void visit_model(model_config const& c, visitor const& visit) {
  visit("model.embed_tokens.weight", {c.vocab_size, c.hidden_size}, role::embedding);
  for (int l = 0; l < c.num_layers; ++l) {
    auto at = "model.layers." + std::to_string(l) + ".";
    visit(at + "input_layernorm.weight", {c.hidden_size}, role::norm);
    visit(at + "post_attention_layernorm.weight", {c.hidden_size}, role::norm);
    visit_attention(c, at + "self_attn.", visit);
    if (c.is_moe_layer(l)) {
      visit_experts(c, at + "mlp.", visit);
    } else {
      visit_mlp(c, at + "mlp.", c.intermediate_size, visit);
    }
  }
  visit("model.norm.weight", {c.hidden_size}, role::norm);
  visit("lm_head.weight", {c.vocab_size, c.hidden_size}, role::head);
}

/// The power of two next to gain * sqrt(3 / fan_in), which keeps the weights exact in bf16.
float amplitude_of(role what, std::int64_t fan_in) {
  if (what == role::embedding) return 1;
  double gain = what == role::head ? 4 : 1;
  double exact = gain * std::sqrt(3.0 / static_cast<double>(fan_in));
  return static_cast<float>(std::exp2(std::floor(std::log2(exact) + 0.5)));
}

template <class T>
std::string raw(std::vector<T> const& values) {
  return {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)};
}

void add_tensor(safetensors_writer& file, std::string_view seed, std::string const& name,
                shape const& dims, role what) {
  auto count = static_cast<std::size_t>(
      std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>()));
  if (what == role::bias) {
    file.add(name, "F32", dims,
             raw(deterministic_tensor(seed, name, count, value_form::u24, 0.125f)));
    return;
  }
  auto form = what == role::norm ? value_form::norm : value_form::u8;
  auto values = deterministic_tensor(seed, name, count, form, amplitude_of(what, dims.back()));
  std::vector<std::uint16_t> halves;
  for (float v : values)
    halves.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16));
  file.add(name, "BF16", dims, raw(halves));
}

std::string shard_name(int shard, int shards) {
  if (shards == 1) return "model.safetensors";
  char text[64];
  std::snprintf(text, sizeof text, "model-%05d-of-%05d.safetensors", shard + 1, shards);
  return text;
}

void make(std::filesystem::path const& directory, std::string_view seed, int shards) {
  auto config = deepseek::load_model_config(directory).value();
  std::vector<safetensors_writer> files(static_cast<std::size_t>(shards));
  std::size_t next = 0;
  visit_model(config, [&](std::string const& name, shape const& dims, role what) {
    // Round robin: the tensors of one layer, and of one expert, then lie in several files.
    add_tensor(files[next++ % files.size()], seed, name, dims, what);
  });
  std::vector<std::pair<std::string, std::string>> homes;
  for (int i = 0; i < shards; ++i) {
    auto const& file = files[static_cast<std::size_t>(i)];
    for (auto const& name : file.names()) homes.emplace_back(name, shard_name(i, shards));
    write_file(directory / shard_name(i, shards), file.bytes());
  }
  write_file(directory / "model.safetensors.index.json", index_text(homes));
}

}  // namespace
}  // namespace ferry::test

int main(int argc, char** argv) {
  int shards = argc > 3 ? std::atoi(argv[3]) : 1;
  if (argc < 3 || argc > 4 || shards < 1) {
    std::fprintf(stderr, "usage: %s DIRECTORY SEED [SHARDS]\n", argv[0]);
    return 2;
  }
  try {
    ferry::test::make(argv[1], argv[2], shards);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
}
