// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What a tokenizer's files may say.
#include "deepseek/tokenizer/tokenizer_directory.hpp"

namespace ferry::deepseek {
namespace {

TEST_F(tokenizer_directory, needs_a_tokenizer_file_only) {
  auto absent = tokenizer::load(directory_.path());
  EXPECT_EQ(absent.error().code, error_code::io);
  EXPECT_THAT(absent.error().message, HasSubstr("tokenizer.json"));
  auto t = load().value();
  EXPECT_EQ(t.encode("ab a", true).value(), (ids{3, 4}));
  EXPECT_FALSE(t.bos_id());
  EXPECT_FALSE(t.eos_id());
}

TEST_F(tokenizer_directory, takes_merges_as_text_or_as_pairs) {
  document["model"]["merges"] = json::parse(R"([["a", "b"], ["Ġ", "a"]])");
  EXPECT_EQ(encoded("ab a"), (ids{3, 4}));
  document["model"]["merges"] = {"#version: 0.2", "Ġ a", "a b"};
  EXPECT_EQ(encoded("ab ab"), (ids{3, 4, 1}));
}

TEST_F(tokenizer_directory, takes_whole_words_first_when_merges_are_ignored) {
  EXPECT_EQ(encoded("aba"), (ids{3, 0}));
  document["model"]["ignore_merges"] = true;
  EXPECT_EQ(encoded("aba"), (ids{5}));
}

TEST_F(tokenizer_directory, honours_a_space_before_the_text) {
  document["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(encoded("a"), (ids{4}));
  EXPECT_EQ(encoded(" a"), (ids{4}));
  EXPECT_EQ(encoded(""), ids{});
}

TEST_F(tokenizer_directory, splits_with_or_without_the_rule_of_byte_level) {
  EXPECT_EQ(encoded("a  a"), (ids{0, 2, 4}));
  document["model"]["vocab"]["aĠ"] = 6;
  document["model"]["merges"] = {"a Ġ"};
  EXPECT_EQ(encoded("a  a"), (ids{0, 2, 2, 0}));
  document["pre_tokenizer"]["use_regex"] = false;
  EXPECT_EQ(encoded("a  a"), (ids{6, 2, 0}));
}

TEST_F(tokenizer_directory, splits_digits_and_punctuation) {
  document["model"]["vocab"].update({{"1", 6}, {"11", 7}, {"!", 8}, {"!!", 9}, {"1!", 12}});
  document["model"]["merges"] = {"1 1", "! !", "1 !"};
  json last = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  auto steps = [&](json first) {
    document["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {std::move(first), last}}};
  };
  steps({{"type", "Digits"}, {"individual_digits", true}});
  EXPECT_EQ(encoded("111!"), (ids{6, 6, 6, 8}));
  steps({{"type", "Digits"}, {"individual_digits", false}});
  EXPECT_EQ(encoded("111!"), (ids{7, 6, 8}));
  steps({{"type", "Punctuation"}});
  EXPECT_EQ(encoded("1!!"), (ids{6, 8, 8}));
  steps({{"type", "Punctuation"}, {"behavior", "Contiguous"}});
  EXPECT_EQ(encoded("1!!"), (ids{6, 9}));
  steps({{"type", "Split"},
         {"pattern", {{"String", "!"}}},
         {"behavior", "Removed"},
         {"invert", false}});
  EXPECT_EQ(encoded("1!1"), (ids{6, 6}));
}

TEST_F(tokenizer_directory, puts_the_tokens_of_a_template_around_the_text) {
  document["post_processor"] = json::parse(R"({"type": "Sequence", "processors": [
    {"type": "ByteLevel"},
    {"type": "TemplateProcessing",
     "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "</s>", "type_id": 0}}],
     "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [10], "tokens": ["<s>"]},
                                    "</s>": {"id": "</s>", "ids": [11], "tokens": ["</s>"]}}}]})");
  EXPECT_EQ(load().value().bos_id(), 10);
  EXPECT_EQ(encoded("ab", true), (ids{10, 3, 11}));
  EXPECT_EQ(encoded("ab", false), (ids{3}));
  // The configuration's word is the last.
  config = {{"add_bos_token", true},
            {"bos_token", "<s>"},
            {"add_eos_token", false},
            {"eos_token", {{"content", "</s>"}}}};
  EXPECT_EQ(encoded("ab", true), (ids{10, 3}));
  config["add_bos_token"] = false;
  EXPECT_EQ(encoded("ab", true), (ids{3}));
  EXPECT_FALSE(load().value().bos_id());
  EXPECT_EQ(load().value().eos_id(), 11);
}

TEST_F(tokenizer_directory, obeys_its_configuration_where_that_does_not_name_the_tokens) {
  auto special = [](char const* name, int id) {
    return json{{"id", name}, {"ids", json::array({id})}, {"tokens", json::array({name})}};
  };
  json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  auto token = [](char const* name) {
    return json{{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  };
  document["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", json::array({token("<s>"), token("</s>"), text, token("</s>")})},
      {"special_tokens", {{"<s>", special("<s>", 10)}, {"</s>", special("</s>", 11)}}}};
  EXPECT_EQ(encoded("ab", true), (ids{10, 11, 3, 11}));
  auto before = load().value();
  EXPECT_EQ(ids(before.leading_ids().begin(), before.leading_ids().end()), (ids{10, 11}));
  config = {{"add_bos_token", false}};
  EXPECT_EQ(encoded("ab", true), (ids{3, 11}));
  EXPECT_TRUE(load().value().leading_ids().empty());
  config = {{"add_eos_token", false}};
  EXPECT_EQ(encoded("ab", true), (ids{10, 11, 3}));
  config = {{"add_bos_token", true}, {"add_eos_token", true}};
  EXPECT_EQ(encoded("ab", true), (ids{10, 11, 3, 11}));
}

TEST_F(tokenizer_directory, reads_special_tokens_from_its_configuration) {
  config = {{"bos_token", "<s>"}, {"eos_token", nullptr}};
  EXPECT_EQ(encoded("ab", true), (ids{3}));
  config = {{"add_bos_token", true},
            {"bos_token", {{"content", "<s>"}}},
            {"add_eos_token", true},
            {"eos_token", "</s>"}};
  EXPECT_EQ(encoded("ab", true), (ids{10, 3, 11}));
  config = {{"add_bos_token", true}};
  expect_malformed("tokenizer_config.json: add_bos_token: true without a bos_token");
  config = {{"eos_token", "<end>"}};
  expect_malformed("tokenizer_config.json: eos_token: '<end>' is not in the vocabulary");
  config = {{"add_bos_token", "yes"}, {"bos_token", "<s>"}};
  expect_malformed("add_bos_token: string where true or false should be");
  config = json::array();
  expect_malformed("the document: array where an object should be");
}

TEST_F(tokenizer_directory, says_which_byte_a_text_has_and_the_vocabulary_lacks) {
  auto refused = load().value().encode("abc", false);
  EXPECT_EQ(refused.error().code, error_code::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("0x63"));
}

TEST_F(tokenizer_directory, has_places_for_ids_that_are_not_dense) {
  document["added_tokens"][1]["id"] = 1000;
  auto t = load().value();
  EXPECT_EQ(t.num_ids(), 1001);
  EXPECT_EQ(t.encode("</s>", false).value(), (ids{1000}));
  std::int32_t gap = 500;
  EXPECT_EQ(t.decode({&gap, 1}).error().code, error_code::invalid_argument);
}

TEST_F(tokenizer_directory, decodes_an_added_token_as_its_own_text) {
  // The spelling of byte 0xE9 in vocabularies, but a letter in texts.
  document["added_tokens"][0]["content"] = "é";
  EXPECT_EQ(load().value().decode(ids{10}).value(), "é");
}

TEST_F(tokenizer_directory, passes_over_settings_that_change_nothing) {
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array()}};
  document["model"].update({{"dropout", 0.0},
                            {"unk_token", ""},
                            {"fuse_unk", true},
                            {"continuing_subword_prefix", ""},
                            {"end_of_word_suffix", nullptr}});
  document["truncation"] = {{"max_length", 1}};
  document.erase("decoder");
  document["model"].erase("type");
  EXPECT_EQ(encoded("ab a"), (ids{3, 4}));
}

}  // namespace
}  // namespace ferry::deepseek
