// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/model_config.hpp>

#include "files/safetensors_writer.hpp"
#include "files/scratch_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

namespace ferry::deepseek {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::filesystem::path const models = FERRY_TINY_MODELS;

std::string text_of(std::filesystem::path const& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// tiny-A's config.json with one piece of text replaced; "" takes the whole line away.
std::string changed(std::string const& from, std::string const& to) {
  auto text = text_of(models / "tiny-A" / "config.json");
  auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_refused(std::string const& text, error_code code, std::string const& reason) {
  auto config = parse_model_config(text, "config.json");
  ASSERT_FALSE(config) << reason;
  EXPECT_EQ(config.error().code, code) << config.error().message;
  EXPECT_THAT(config.error().message, HasSubstr("config.json: "));
  EXPECT_THAT(config.error().message, HasSubstr(reason));
}
void expect_malformed(std::string const& from, std::string const& to, std::string const& reason) {
  expect_refused(changed(from, to), error_code::malformed_input, reason);
}
void expect_unsupported(std::string const& from, std::string const& to, std::string const& reason) {
  expect_refused(changed(from, to), error_code::unsupported, reason);
}

TEST(model_config, reads_every_field_of_a_third_generation_model) {
  auto c = load_model_config(models / "tiny-A").value();
  EXPECT_EQ(c.model_type, "deepseek_v3");
  EXPECT_EQ(c.vocab_size, 256);
  EXPECT_EQ(c.hidden_size, 256);
  EXPECT_EQ(c.num_layers, 3);
  EXPECT_EQ(c.num_heads, 8);
  EXPECT_EQ(c.q_lora_rank, 96);
  EXPECT_EQ(c.kv_lora_rank, 64);
  EXPECT_EQ(c.qk_nope_head_dim, 32);
  EXPECT_EQ(c.qk_rope_head_dim, 16);
  EXPECT_EQ(c.v_head_dim, 32);
  EXPECT_EQ(c.intermediate_size, 512);
  EXPECT_EQ(c.moe_intermediate_size, 128);
  EXPECT_EQ(c.n_routed_experts, 16);
  EXPECT_EQ(c.n_shared_experts, 1);
  EXPECT_EQ(c.num_experts_per_tok, 4);
  EXPECT_EQ(c.n_group, 4);
  EXPECT_EQ(c.topk_group, 2);
  EXPECT_EQ(c.scoring_func, scoring::sigmoid);
  EXPECT_EQ(c.topk_method, topk_method::noaux_tc);
  EXPECT_TRUE(c.norm_topk_prob);
  EXPECT_EQ(c.routed_scaling_factor, 2.5);
  EXPECT_EQ(c.rms_norm_eps, 1e-6);
  EXPECT_EQ(c.rope_theta, 10000);
  EXPECT_EQ(c.max_position_embeddings, 256);
  EXPECT_FALSE(c.tie_word_embeddings);
  EXPECT_EQ(c.bos_token_id, 0);
  EXPECT_THAT(c.eos_token_ids, ElementsAre(1));
  EXPECT_EQ(c.torch_dtype, weight_dtype::bf16);
  EXPECT_FALSE(c.is_fp8());
  ASSERT_TRUE(c.rope_scaling);
  EXPECT_EQ(c.rope_scaling->factor, 4);
  EXPECT_EQ(c.rope_scaling->original_max_position_embeddings, 64);
  EXPECT_EQ(c.rope_scaling->beta_fast, 32);
  EXPECT_EQ(c.rope_scaling->beta_slow, 1);
  EXPECT_EQ(c.rope_scaling->mscale, 1);
  EXPECT_EQ(c.rope_scaling->mscale_all_dim, 1);
  EXPECT_FALSE(c.is_moe_layer(0));
  EXPECT_TRUE(c.is_moe_layer(1));
}

TEST(model_config, reads_a_second_generation_model_without_query_compression) {
  auto c = load_model_config(models / "tiny-B").value();
  EXPECT_EQ(c.model_type, "deepseek_v2");
  EXPECT_EQ(c.q_lora_rank, 0);
  EXPECT_EQ(c.scoring_func, scoring::softmax);
  EXPECT_EQ(c.topk_method, topk_method::group_limited_greedy);
  EXPECT_FALSE(c.norm_topk_prob);
  EXPECT_EQ(c.n_shared_experts, 2);
  EXPECT_EQ(c.rope_scaling->mscale, 0.707);
}

TEST(model_config, reads_the_blocks_of_fp8_weights) {
  auto c = load_model_config(models / "tiny-C").value();
  EXPECT_TRUE(c.is_fp8());
  EXPECT_THAT(c.weight_block_size, ElementsAre(128, 128));
}

// The fields that only the model type decides, as a file may lack them.
std::string bare(std::string const& model_type) {
  return R"({"model_type":")" + model_type + R"(","vocab_size":100,"hidden_size":64,
    "num_hidden_layers":2,"num_attention_heads":2,"q_lora_rank":null,"kv_lora_rank":16,
    "qk_nope_head_dim":8,"qk_rope_head_dim":4,"v_head_dim":8,"intermediate_size":32,
    "moe_intermediate_size":16,"n_routed_experts":8,"num_experts_per_tok":2,
    "max_position_embeddings":64})";
}

TEST(model_config, takes_defaults_of_the_model_type) {
  auto second = parse_model_config(bare("deepseek_v2"), "x").value();
  EXPECT_EQ(second.scoring_func, scoring::softmax);
  EXPECT_EQ(second.topk_method, topk_method::greedy);
  EXPECT_FALSE(second.norm_topk_prob);
  EXPECT_EQ(second.routed_scaling_factor, 1);
  EXPECT_EQ(second.n_group, 1);
  EXPECT_EQ(second.topk_group, 1);
  EXPECT_EQ(second.n_shared_experts, 0);
  EXPECT_FALSE(second.rope_scaling);
  EXPECT_FALSE(second.bos_token_id);
  EXPECT_TRUE(second.eos_token_ids.empty());
  auto third = parse_model_config(bare("deepseek_v3"), "x").value();
  EXPECT_EQ(third.scoring_func, scoring::sigmoid);
  EXPECT_EQ(third.topk_method, topk_method::noaux_tc);
  EXPECT_TRUE(third.norm_topk_prob);
  EXPECT_EQ(third.routed_scaling_factor, 2.5);
}

TEST(model_config, takes_several_end_tokens) {
  auto c = parse_model_config(changed("\"eos_token_id\": 1", "\"eos_token_id\": [1, 7]"), "x");
  EXPECT_THAT(c.value().eos_token_ids, ElementsAre(1, 7));
}

TEST(model_config, looks_for_the_end_token_in_generation_config) {
  test::scratch_directory directory;
  test::write_file(directory / "config.json", bare("deepseek_v3"));
  test::write_file(directory / "generation_config.json", R"({"bos_token_id":3,"eos_token_id":4})");
  auto c = load_model_config(directory.path()).value();
  EXPECT_EQ(c.bos_token_id, 3);
  EXPECT_THAT(c.eos_token_ids, ElementsAre(4));
  test::write_file(directory / "generation_config.json", R"({"eos_token_id":100})");
  EXPECT_THAT(load_model_config(directory.path()).error().message,
              HasSubstr("generation_config.json: eos_token_id is 100, not in 0..99"));
}

TEST(model_config, lets_generation_config_overrule_the_end_token_unless_it_is_a_copy) {
  test::scratch_directory directory;
  auto write = [&](std::string_view text) {
    test::write_file(directory / "generation_config.json", text);
    return load_model_config(directory.path());
  };
  test::write_file(directory / "config.json",
                   changed("\"eos_token_id\": 1", "\"eos_token_id\": [1, 7]"));
  EXPECT_THAT(write(R"({"eos_token_id":[4,5]})").value().eos_token_ids, ElementsAre(4, 5));
  EXPECT_THAT(write(R"({"eos_token_id":null})").value().eos_token_ids, ElementsAre(1, 7));
  EXPECT_THAT(write(R"({"_from_model_config":true,"eos_token_id":4})").value().eos_token_ids,
              ElementsAre(1, 7));
  for (auto const* text : {"{\"eos_token_id\":", "[]", "{\"eos_token_id\":\"x\"}"}) {
    auto refused = write(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, error_code::malformed_input) << text;
    EXPECT_THAT(refused.error().message, HasSubstr("generation_config.json")) << text;
  }
}

TEST(model_config, reports_a_link_that_leads_nowhere) {
  test::scratch_directory directory;
  test::write_file(directory / "config.json", bare("deepseek_v3"));
  std::filesystem::create_symlink(directory / "absent", directory / "generation_config.json");
  auto refused = load_model_config(directory.path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::io);
  EXPECT_THAT(refused.error().message, HasSubstr("generation_config.json"));
}

TEST(model_config, shows_bytes_that_are_no_text_as_numbers) {
  auto refused = parse_model_config("{\"a\": \"\xff\"}", "x");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("\\xFF"));
  EXPECT_EQ(refused.error().message.find('\xff'), std::string::npos);
}

TEST(model_config, takes_plain_rotation_by_any_of_its_names) {
  auto scaling = text_of(models / "tiny-A" / "config.json");
  auto begin = scaling.find("\"rope_scaling\"");
  scaling = scaling.substr(begin, scaling.find('}', begin) + 1 - begin);
  EXPECT_FALSE(
      parse_model_config(changed(scaling, "\"rope_scaling\": null"), "x").value().rope_scaling);
  auto newer =
      parse_model_config(
          changed(scaling, R"("rope_parameters": {"rope_type": "default", "rope_theta": 500.5})"),
          "x")
          .value();
  EXPECT_FALSE(newer.rope_scaling);
  EXPECT_EQ(newer.rope_theta, 500.5);
}

TEST(model_config, refuses_what_is_no_config) {
  test::scratch_directory directory;
  auto absent = load_model_config(directory.path());
  EXPECT_EQ(absent.error().code, error_code::io);
  EXPECT_THAT(absent.error().message, HasSubstr("config.json: No such file"));
  std::filesystem::create_directory(directory / "config.json");
  EXPECT_EQ(load_model_config(directory.path()).error().code, error_code::io);
  expect_refused("", error_code::malformed_input, "not JSON");
  expect_refused("[]", error_code::malformed_input, "not a JSON object");
  expect_refused("{}", error_code::malformed_input, "model_type is missing");
  expect_refused(std::string(1 << 20, '['), error_code::malformed_input, "levels of JSON");
  expect_refused(std::string(1 << 20, 'x'), error_code::malformed_input, "not JSON");
  expect_malformed("\"vocab_size\"", "\"hidden_size\"", "\"hidden_size\" stands twice");
}

TEST(model_config, refuses_fields_missing_mistyped_or_out_of_range) {
  expect_malformed("\"vocab_size\"", "\"other\"", "vocab_size is missing");
  expect_malformed("\"vocab_size\": 256", "\"vocab_size\": \"256\"",
                   "vocab_size is \"256\", not a whole number");
  expect_malformed("\"vocab_size\": 256", "\"vocab_size\": 256.5", "256.5, not a whole number");
  expect_malformed("\"vocab_size\": 256", "\"vocab_size\": 0", "vocab_size is 0, not in 1..");
  expect_malformed("\"vocab_size\": 256", "\"vocab_size\": -1", "vocab_size is -1, not in 1..");
  expect_malformed("\"vocab_size\": 256", "\"vocab_size\": 18446744073709551615",
                   "vocab_size is 18446744073709551615, not in 1..");
  expect_malformed("\"hidden_size\": 256", "\"hidden_size\": 9999999", "not in 1..1048576");
  expect_malformed("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 0", "num_hidden_layers");
  expect_malformed("\"qk_rope_head_dim\": 16", "\"qk_rope_head_dim\": 15",
                   "qk_rope_head_dim is 15, not even");
  expect_malformed("\"rope_theta\": 10000", "\"rope_theta\": 0", "rope_theta is 0, not in");
  expect_malformed("\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": -1", "rms_norm_eps is -1");
  expect_malformed("\"factor\": 4", "\"factor\": 0.5", "rope_scaling: factor is 0.5");
  expect_malformed("\"factor\": 4", "\"other\": 4", "rope_scaling: factor is missing");
  expect_malformed("\"tie_word_embeddings\": false", "\"tie_word_embeddings\": 1",
                   "tie_word_embeddings is 1, not true or false");
  expect_malformed("\"eos_token_id\": 1", "\"eos_token_id\": 256",
                   "eos_token_id is 256, not in 0..255");
  expect_malformed("\"eos_token_id\": 1", "\"eos_token_id\": [1, \"x\"]", "not a whole number");
}

TEST(model_config, refuses_routing_that_cannot_be) {
  expect_malformed("\"num_experts_per_tok\": 4", "\"num_experts_per_tok\": 33",
                   "num_experts_per_tok is 33, not in 1..32");
  expect_malformed("\"num_experts_per_tok\": 4", "\"num_experts_per_tok\": 17",
                   "num_experts_per_tok is 17, more than n_routed_experts, 16");
  expect_malformed("\"num_experts_per_tok\": 4", "\"num_experts_per_tok\": 9",
                   "num_experts_per_tok is 9, more than the 8 experts of topk_group 2");
  expect_malformed("\"n_group\": 4", "\"n_group\": 3", "n_group is 3, which does not divide");
  expect_malformed("\"topk_group\": 2", "\"topk_group\": 5", "topk_group is 5, more than n_group");
  expect_malformed("\"n_group\": 4", "\"n_group\": 16", "noaux_tc needs at least 2");
  expect_unsupported("\"n_routed_experts\": 16", "\"n_routed_experts\": null",
                     "a model without experts");
}

TEST(model_config, refuses_other_kinds_of_model) {
  expect_unsupported("\"deepseek_v3\"", "\"llama\"", "model_type is \"llama\"");
  expect_unsupported("\"silu\"", "\"gelu\"", "hidden_act is gelu, only silu");
  expect_unsupported("\"attention_bias\": false", "\"attention_bias\": true",
                     "attention_bias is true, only false");
  expect_unsupported("\"yarn\"", "\"linear\"", "rope_scaling: type is \"linear\"");
  expect_unsupported("\"sigmoid\"", "\"tanh\"", "scoring_func is \"tanh\"");
  expect_unsupported("\"noaux_tc\"", "\"random\"", "topk_method is \"random\"");
  expect_unsupported("\"bfloat16\"", "\"int4\"", "torch_dtype is \"int4\"");
  expect_unsupported("\"use_cache\": true", R"("quantization_config": {"quant_method": "gptq"})",
                     "quantization_config: quant_method is gptq, only fp8");
  expect_malformed("\"use_cache\": true", R"("quantization_config": {"quant_method": "fp8"})",
                   "weight_block_size is null");
  expect_malformed("\"use_cache\": true",
                   R"("quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 8]})",
                   "weight_block_size is 0, not in 1..");
}

TEST(model_config, survives_random_damage) {
  auto const whole = text_of(models / "tiny-C" / "config.json");
  std::mt19937 random(3);
  std::string_view const alphabet = "{}[]\",:0189-eE.\\ \x00\xff";
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    auto damaged = whole;
    for (auto n = random() % 3 + 1; n > 0; --n)
      damaged[random() % damaged.size()] = alphabet[random() % alphabet.size()];
    if (!parse_model_config(damaged, "x")) ++refused;
  }
  EXPECT_GT(refused, 1000);
  for (std::size_t bytes = 0; bytes + 1 < whole.size(); ++bytes)
    ASSERT_FALSE(parse_model_config(whole.substr(0, bytes), "x")) << bytes;
}

}  // namespace
}  // namespace ferry::deepseek
