// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/tokenizer.hpp>

#include "data/test_data.hpp"
#include "files/safetensors_writer.hpp"
#include "files/scratch_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

namespace ferry::deepseek {
namespace {

using json = nlohmann::json;
using strings = std::vector<std::string>;
using ids = std::vector<std::int32_t>;
using testing::HasSubstr;

std::filesystem::path const small = test::test_data() / "tokenizer/small_deepseek";

std::string contents_of(std::filesystem::path const& file) {
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

// A text as the tokens that it becomes, each by its bytes.
strings tokens_of(tokenizer const& t, std::string_view text) {
  strings tokens;
  auto encoded = t.encode(text, false).value();
  for (auto id : encoded) tokens.push_back(t.decode_bytes({&id, 1}).value());
  return tokens;
}

// --- The small tokenizer: DeepSeek-V3's rules, and a vocabulary in which wrong splits show. Its
// merges stand in make_tokenizer.py beside it, in the order of their ranks.

TEST(small_tokenizer, merges_within_words_and_numbers) {
  auto t = tokenizer::load(small).value();
  EXPECT_EQ(t.encode("hello world", false).value(), (ids{262, 267}));
  EXPECT_EQ(t.encode("12345", false).value(), (ids{274, 276}));  // 12345 is a token too
  EXPECT_EQ(tokens_of(t, "hello, world!"), (strings{"hello", ",", " world", "!"}));
  EXPECT_EQ(tokens_of(t, "1234"), (strings{"123", "4"}));
  EXPECT_EQ(tokens_of(t, "½12345"), (strings{"\xC2", "\xBD", "12", "34", "5"}));
  EXPECT_EQ(tokens_of(t, "aaa"), (strings{"aa", "a"}));
  EXPECT_EQ(tokens_of(t, "abc"), (strings{"a", "bc"}));
  EXPECT_EQ(tokens_of(t, ""), strings{});
}

TEST(small_tokenizer, keeps_a_sign_with_the_letters_after_it) {
  auto t = tokenizer::load(small).value();
  EXPECT_EQ(tokens_of(t, "(abc"), (strings{"(a", "bc"}));
  EXPECT_EQ(tokens_of(t, "x.c. c"), (strings{"x", ".c", ".", " ", "c"}));
  EXPECT_EQ(tokens_of(t, "x_b _bc"), (strings{"x", "_b", " ", "_", "bc"}));
  EXPECT_EQ(tokens_of(t, "hello'll"), (strings{"hello", "'", "ll"}));
}

TEST(small_tokenizer, splits_space_and_line_ends) {
  auto t = tokenizer::load(small).value();
  EXPECT_EQ(tokens_of(t, "    abc"), (strings{"  ", " ", " a", "bc"}));
  EXPECT_EQ(tokens_of(t, "a    "), (strings{"a", "    "}));
  EXPECT_EQ(tokens_of(t, "hello\n\nworld"), (strings{"hello", "\n\n", "w", "or", "ld"}));
  EXPECT_EQ(tokens_of(t, "!!\nab"), (strings{"!!\n", "ab"}));
  EXPECT_EQ(tokens_of(t, "a !"), (strings{"a", " !"}));
  // U+180E is no white space, so the line's end is a word of its own.
  EXPECT_EQ(tokens_of(t, "\u180e\n"), (strings{"\xE1", "\xA0", "\x8E", "\n"}));
}

TEST(small_tokenizer, splits_ideographs_from_letters_and_keeps_marks_with_them) {
  auto t = tokenizer::load(small).value();
  EXPECT_EQ(tokens_of(t, "日本語"), (strings{"日本", "\xE8", "\xAA", "\x9E"}));
  EXPECT_EQ(tokens_of(t, "本abc"), (strings{"本", "a", "bc"}));
  EXPECT_EQ(tokens_of(t, "e\u0301c"), (strings{"e\u0301", "c"}));
  EXPECT_EQ(tokens_of(t, "c\u00e9"), (strings{"c\u00e9"}));
}

TEST(small_tokenizer, finds_added_tokens_in_the_text) {
  auto t = tokenizer::load(small).value();
  EXPECT_EQ(t.encode("<｜begin▁of▁sentence｜>hello<｜end▁of▁sentence｜>", false).value(),
            (ids{0, 262, 1}));
  EXPECT_EQ(t.encode("<｜User｜>hello<|EOT|>", false).value(), (ids{298, 262, 299}));
  EXPECT_EQ(tokens_of(t, "<｜User>"),
            (strings{"<", "\xEF", "\xBD", "\x9C", "U", "s", "e", "r", ">"}));
}

TEST(small_tokenizer, takes_the_special_tokens_from_its_configuration) {
  auto t = tokenizer::load(small).value();
  EXPECT_EQ(t.bos_id(), 0);
  EXPECT_EQ(t.eos_id(), 1);
  EXPECT_EQ(t.num_ids(), 300);
  EXPECT_TRUE(t.is_special(0));
  EXPECT_FALSE(t.is_special(298));
  EXPECT_TRUE(t.is_special(299));
  EXPECT_FALSE(t.is_special(-1));
  EXPECT_FALSE(t.is_special(300));
  EXPECT_EQ(t.encode("hello", true).value(), (ids{0, 262}));
  EXPECT_EQ(t.encode("", true).value(), (ids{0}));
}

TEST(small_tokenizer, gives_every_byte_back) {
  auto t = tokenizer::load(small).value();
  // What is no UTF-8 is encoded byte by byte, though 日's first two bytes are a token together.
  EXPECT_EQ(tokens_of(t, "ab\xff\xfe日\xe6\x97"),
            (strings{"ab", "\xFF", "\xFE", "日", "\xE6", "\x97"}));
  std::mt19937 random(1);
  std::string const likely = "ab 12\n!\xe6\x97\xa5\xcc\x81\xf0\x9f\x98\x80\xc3\xff\x80";
  for (int i = 0; i < 400; ++i) {
    std::string text;
    for (auto left = random() % 30; left > 0; --left)
      text += random() % 4 ? likely[random() % likely.size()] : static_cast<char>(random());
    EXPECT_EQ(t.decode_bytes(t.encode(text, false).value()).value(), text);
  }
}

TEST(small_tokenizer, may_be_used_by_many_threads) {
  auto t = tokenizer::load(small).value();
  auto expected = t.encode("hello, 日本 world 12345!\n", true).value();
  std::vector<std::thread> threads;
  std::vector<int> equal(3);
  for (std::size_t i = 0; i < equal.size(); ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 100; ++round)
        equal[i] += t.encode("hello, 日本 world 12345!\n", true).value() == expected;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(equal, testing::Each(100));
}

// --- Decoding

TEST(decode, replaces_what_is_no_text_once_all_bytes_are_joined) {
  auto t = tokenizer::load(small).value();
  auto decoded = [&](std::string_view bytes) {
    return t.decode(t.encode(bytes, false).value()).value();
  };
  EXPECT_EQ(decoded("日本é"), "日本é");
  EXPECT_EQ(decoded("a\xff"
                    "b"),
            "a\uFFFDb");
  EXPECT_EQ(decoded("a\xe6\x97"), "a\uFFFD");  // one character, cut off
  EXPECT_EQ(decoded("\xe6\x97"
                    "a"),
            "\uFFFDa");
  EXPECT_EQ(decoded("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate is no start of anything
  EXPECT_EQ(decoded("\xc0\x80"), "\uFFFD\uFFFD");
  EXPECT_EQ(decoded("\xf0\x9f\x98\xf0\x9f\x98\x80"), "\uFFFD😀");
  EXPECT_EQ(decoded("\xf4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(decode, leaves_special_tokens_out_when_asked) {
  auto t = tokenizer::load(small).value();
  ids with{0, 262, 298, 299, 1};
  EXPECT_EQ(t.decode(with).value(),
            "<｜begin▁of▁sentence｜>hello<｜User｜><|EOT|><｜end▁of▁sentence｜>");
  EXPECT_EQ(t.decode(with, true).value(), "hello<｜User｜>");
  EXPECT_EQ(t.decode({}).value(), "");
}

TEST(decode, refuses_ids_that_no_token_has) {
  auto t = tokenizer::load(small).value();
  for (std::int32_t id : {-1, 300, 1 << 22, INT32_MAX, INT32_MIN}) {
    auto text = t.decode({&id, 1});
    ASSERT_FALSE(text) << id;
    EXPECT_EQ(text.error().code, error_code::invalid_argument);
    EXPECT_THAT(text.error().message, HasSubstr(std::to_string(id)));
    EXPECT_FALSE(t.decode_bytes({&id, 1}));
  }
}

TEST(text_stream, holds_back_a_character_until_it_is_whole) {
  auto t = tokenizer::load(small).value();
  text_stream stream(t);
  strings pushed;
  auto encoded = t.encode("a語<|EOT|>b", false).value();
  for (auto id : encoded) pushed.push_back(stream.push(id).value());
  EXPECT_EQ(pushed, (strings{"a", "", "", "語", "", "b"}));
  EXPECT_EQ(stream.finish(), "");
}

TEST(text_stream, stays_as_it_was_after_an_unknown_id) {
  auto t = tokenizer::load(small).value();
  text_stream stream(t, false);
  auto parts = t.encode("語", false).value();
  EXPECT_EQ(stream.push(parts[0]).value(), "");
  EXPECT_EQ(stream.push(999).error().code, error_code::invalid_argument);
  EXPECT_EQ(stream.push(parts[1]).value(), "");
  EXPECT_EQ(stream.push(parts[2]).value(), "語");
  EXPECT_EQ(stream.push(parts[0]).value(), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(text_stream, joined_is_what_decode_gives) {
  auto t = tokenizer::load(small).value();
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    ids tokens;
    for (auto left = random() % 20; left > 0; --left)
      tokens.push_back(
          static_cast<std::int32_t>(random() % 2 ? random() % 300 : 150 + random() % 110));
    text_stream stream(t, i % 2);
    std::string joined;
    for (auto id : tokens) joined += stream.push(id).value();
    joined += stream.finish();
    EXPECT_EQ(joined, t.decode(tokens, i % 2).value());
  }
}

// --- Long texts

TEST(long_texts, take_time_in_proportion) {
  auto t = tokenizer::load(small).value();
  auto begun = std::chrono::steady_clock::now();
  constexpr std::size_t length = 1 << 20;
  for (std::string_view unit : {"a", " ", "1", "\n", "日", "e\u0301", "\xff", "<", " \n", "!a"}) {
    std::string text;
    while (text.size() < length) text += unit;
    auto encoded = t.encode(text, false);
    ASSERT_TRUE(encoded) << encoded.error().message;
    EXPECT_EQ(t.decode_bytes(*encoded).value(), text);
  }
  // Hours if any of it were quadratic.
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(90));
}

// --- The files of others

TEST(demo_tokenizer, gives_the_ids_and_texts_of_its_golden_file) {
  auto t = tokenizer::load(FERRY_DEMO_MODEL).value();
  auto golden = json::parse(contents_of(FERRY_DEMO_MODEL "/golden.json"));
  ASSERT_FALSE(golden["prompts"].empty());
  EXPECT_EQ(t.bos_id(), 0);
  EXPECT_EQ(t.eos_id(), 1);
  for (auto& sample : golden["prompts"]) {
    auto prompt = sample["prompt"].get<std::string>();
    auto prompt_ids = sample["prompt_ids"].get<ids>();
    EXPECT_EQ(t.encode(prompt, true).value(), prompt_ids);
    auto all = prompt_ids, more = sample["continuation_ids"].get<ids>();
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_EQ(t.decode(all, true).value(), sample["text"].get<std::string>());
  }
}

TEST(deepseek_tokenizer, gives_the_expected_ids) {
  auto* named = std::getenv("FERRY_TOKENIZER_DIR");
  if (!named || !*named)
    GTEST_SKIP() << "FERRY_TOKENIZER_DIR names no directory with DeepSeek-V3's tokenizer.json and "
                    "the ids.json to expect";
  std::filesystem::path directory = named;
  auto loaded = tokenizer::load(directory);
  ASSERT_TRUE(loaded) << loaded.error().message;
  auto samples = json::parse(contents_of(directory / "ids.json"));
  ASSERT_FALSE(samples.empty());
  for (auto& sample : samples) {
    auto text = sample["text"].get<std::string>();
    auto expected = sample["ids"].get<ids>();
    EXPECT_EQ(loaded->encode(text, false).value(), expected) << text;
    EXPECT_EQ(loaded->decode(expected).value(), text);
  }
}

// --- What a file may say

// A tokenizer of a few tokens, to be changed by each test.
class tokenizer_directory : public testing::Test {
 protected:
  json document = json::parse(R"({
    "version": "1.0", "normalizer": null, "post_processor": null, "decoder": {"type": "ByteLevel"},
    "added_tokens": [{"id": 10, "content": "<s>", "special": true, "normalized": false,
                      "single_word": false, "lstrip": false, "rstrip": false},
                     {"id": 11, "content": "</s>", "special": true, "normalized": false,
                      "single_word": false, "lstrip": false, "rstrip": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3, "Ġa": 4, "aba": 5},
              "merges": ["a b", "Ġ a"]}})");
  json config;  // null: no such file

  result<tokenizer> load() {
    test::write_file(directory_ / "tokenizer.json", document.dump());
    if (!config.is_null()) test::write_file(directory_ / "tokenizer_config.json", config.dump());
    return tokenizer::load(directory_.path());
  }
  ids encoded(std::string_view text, bool add_special = false) {
    return load().value().encode(text, add_special).value();
  }
  void expect_refused(error_code code, std::string const& reason) {
    auto loaded = load();
    ASSERT_FALSE(loaded) << reason;
    EXPECT_EQ(loaded.error().code, code) << loaded.error().message;
    EXPECT_THAT(loaded.error().message, HasSubstr(reason));
    EXPECT_THAT(loaded.error().message, HasSubstr(directory_.path().string() + "/tokenizer"));
  }
  void expect_malformed(std::string const& reason) {
    expect_refused(error_code::malformed_input, reason);
  }
  void expect_unsupported(std::string const& reason) {
    expect_refused(error_code::unsupported, reason);
  }
  test::scratch_directory directory_;
};

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

TEST_F(tokenizer_directory, refuses_by_name_what_would_give_other_ids) {
  auto const plain = document;
  auto refused = [&](json::json_pointer const& at, json value, std::string const& reason) {
    document = plain;
    document[at] = std::move(value);
    expect_unsupported(reason);
  };
  using namespace nlohmann::literals;
  refused("/normalizer"_json_pointer, {{"type", "NFC"}}, "normalizer: the normalizer NFC");
  refused("/normalizer"_json_pointer,
          {{"type", "Sequence"}, {"normalizers", {{{"type", "Lowercase"}}}}}, "Lowercase");
  refused("/pre_tokenizer"_json_pointer, nullptr, "pre_tokenizer");
  refused("/pre_tokenizer"_json_pointer, {{"type", "Metaspace"}}, "Metaspace");
  refused("/pre_tokenizer"_json_pointer, {{"type", "Digits"}}, "no ByteLevel");
  refused(
      "/pre_tokenizer"_json_pointer,
      {{"type", "Sequence"}, {"pretokenizers", {{{"type", "ByteLevel"}}, {{"type", "Digits"}}}}},
      "Digits after ByteLevel");
  refused("/post_processor"_json_pointer, {{"type", "BertProcessing"}}, "BertProcessing");
  refused("/decoder"_json_pointer, {{"type", "WordPiece"}}, "WordPiece");
  refused("/version"_json_pointer, "2.0", "2.0");
  refused("/model/type"_json_pointer, "Unigram", "Unigram");
  refused("/model/dropout"_json_pointer, 0.1, "model.dropout");
  refused("/model/unk_token"_json_pointer, "<s>", "model.unk_token");
  refused("/model/byte_fallback"_json_pointer, true, "model.byte_fallback");
  refused("/model/continuing_subword_prefix"_json_pointer, "##", "##");
  refused("/model/end_of_word_suffix"_json_pointer, "</w>", "</w>");
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

TEST_F(tokenizer_directory, names_the_place_of_what_is_malformed) {
  auto const plain = document;
  auto refused = [&](json::json_pointer const& at, json value, std::string const& reason) {
    document = plain;
    document[at] = std::move(value);
    expect_malformed(reason);
  };
  using namespace nlohmann::literals;
  refused("/model"_json_pointer, nullptr, "model: missing");
  refused("/model"_json_pointer, json::array(), "model: array where an object should be");
  refused("/model/vocab"_json_pointer, nullptr, "model.vocab: missing");
  refused("/model/vocab"_json_pointer, {"a"}, "model.vocab: array");
  refused("/model/merges"_json_pointer, nullptr, "model.merges: missing");
  refused("/model/vocab/a"_json_pointer, -1, "model.vocab['a']: -1");
  refused("/model/vocab/a"_json_pointer, 4194304, "0..4194303");
  refused("/model/vocab/a"_json_pointer, 18446744073709551615u, "0..4194303");
  refused("/model/vocab/a"_json_pointer, 1.5, "1.5");
  refused("/model/vocab/a"_json_pointer, "0", "is no id");
  refused("/model/vocab/a"_json_pointer, 1, "id 1 is another token's too");
  refused("/model/merges/1"_json_pointer, "a", "model.merges[1]: 'a' is not two tokens");
  refused("/model/merges/1"_json_pointer, "a b a", "model.merges[1]");
  refused("/model/merges/1"_json_pointer, {"a", 7}, "model.merges[1][1]: number");
  refused("/model/merges/1"_json_pointer, {"a", "b", "a"}, "model.merges[1]");
  refused("/model/merges/1"_json_pointer, "a z", "model.merges[1]: 'z' is not in the vocabulary");
  refused("/model/merges/1"_json_pointer, "b a", "model.merges[1]: 'ba' is not in the vocabulary");
  refused("/model/ignore_merges"_json_pointer, 1, "model.ignore_merges");
  refused("/added_tokens"_json_pointer, 1, "added_tokens: number");
  refused("/added_tokens/1"_json_pointer, "x", "added_tokens[1]: string");
  refused("/added_tokens/1/content"_json_pointer, "", "added_tokens[1].content: empty");
  refused("/added_tokens/1/content"_json_pointer, "<s>", "added twice");
  refused("/added_tokens/1/content"_json_pointer, "ab", "has id 11, but 3 in the vocabulary");
  refused("/added_tokens/1/id"_json_pointer, 10, "id 10");
  refused("/added_tokens/1/id"_json_pointer, 3, "id 3");
  refused("/added_tokens/1/id"_json_pointer, nullptr, "added_tokens[1].id: missing");
  refused("/added_tokens/1/id"_json_pointer, 99999999999, "99999999999");
  refused("/added_tokens/1/lstrip"_json_pointer, "no", "added_tokens[1].lstrip");
  refused("/pre_tokenizer/type"_json_pointer, 5, "pre_tokenizer.type");
  refused("/pre_tokenizer/use_regex"_json_pointer, 5, "pre_tokenizer.use_regex");
  json split = {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}};
  refused("/pre_tokenizer"_json_pointer, split, "pre_tokenizer.pattern.Regex: a group without end");
  split["pattern"] = {{"Regexp", "a"}};
  refused("/pre_tokenizer"_json_pointer, split, "pre_tokenizer.pattern: neither");
  split["pattern"] = {{"Regex", "a"}};
  split["behavior"] = "Sideways";
  refused("/pre_tokenizer"_json_pointer, split, "pre_tokenizer.behavior: 'Sideways'");
  auto around = json::parse(R"({"type": "TemplateProcessing", "special_tokens": {},
    "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]})");
  refused("/post_processor"_json_pointer, around, "special_tokens.<s>: missing");
  around["special_tokens"]["<s>"]["ids"] = {12};
  refused("/post_processor"_json_pointer, around, "12 is no token's id");
  around["single"] = json::array();
  refused("/post_processor"_json_pointer, around, "no place for the text");
}

TEST_F(tokenizer_directory, refuses_sequences_without_end) {
  json nested = {{"type", "ByteLevel"}};
  for (int depth = 0; depth < 25; ++depth)
    nested = {{"type", "Sequence"}, {"pretokenizers", {nested}}};
  document["pre_tokenizer"] = nested;
  expect_malformed("more than 16 sequences");
  std::string deep(100000, '[');
  test::write_file(directory_ / "tokenizer.json", deep);
  EXPECT_EQ(tokenizer::load(directory_.path()).error().code, error_code::malformed_input);
  test::write_file(directory_ / "tokenizer.json", deep + std::string(deep.size(), ']'));
  EXPECT_EQ(tokenizer::load(directory_.path()).error().code, error_code::malformed_input);
}

TEST_F(tokenizer_directory, refuses_a_file_that_is_none) {
  std::filesystem::create_directory(directory_ / "tokenizer.json");
  EXPECT_EQ(tokenizer::load(directory_.path()).error().code, error_code::io);
}

// Whatever becomes of a file, the answer is a tokenizer or an error of a kind that says so.
void expect_an_answer(std::filesystem::path const& directory, std::string const& text) {
  test::write_file(directory / "tokenizer.json", text);
  auto loaded = tokenizer::load(directory);
  if (!loaded) {
    EXPECT_TRUE(loaded.error().code == error_code::malformed_input ||
                loaded.error().code == error_code::unsupported)
        << to_string(loaded.error().code) << ": " << loaded.error().message;
    EXPECT_THAT(loaded.error().message, HasSubstr("tokenizer.json: "));
    return;
  }
  auto encoded = loaded->encode("hello, 日本 world 12345!\n<｜User｜>", true);
  if (encoded) {
    EXPECT_TRUE(loaded->decode(*encoded));
  }
}

TEST_F(tokenizer_directory, cut_off_anywhere_is_malformed) {
  auto text = contents_of(small / "tokenizer.json");
  auto whole = text.find_last_of('}') + 1;
  for (std::size_t bytes = 0; bytes < whole; bytes += bytes < 200 ? 1 : 13) {
    test::write_file(directory_ / "tokenizer.json", text.substr(0, bytes));
    auto loaded = tokenizer::load(directory_.path());
    ASSERT_FALSE(loaded) << bytes;
    EXPECT_EQ(loaded.error().code, error_code::malformed_input);
  }
}

TEST_F(tokenizer_directory, with_changed_bytes_is_read_or_refused) {
  auto const text = contents_of(small / "tokenizer.json");
  std::mt19937 random(4);
  std::string const signs = "0123456789{}[]\",:\\.-tfn*+?() \xff";
  for (int i = 0; i < 600; ++i) {
    auto changed = text;
    for (auto left = 1 + random() % 3; left > 0; --left)
      changed[random() % changed.size()] = signs[random() % signs.size()];
    expect_an_answer(directory_.path(), changed);
  }
}

TEST_F(tokenizer_directory, with_a_part_of_another_kind_is_read_or_refused) {
  auto const whole = json::parse(contents_of(small / "tokenizer.json"));
  auto flat = whole.flatten();
  json const others[] = {nullptr, 1, -1, 2.5, "x", true, json::array(), json::object()};
  std::mt19937 random(6);
  for (auto& [path, value] : flat.items()) {
    bool in_lists = path.starts_with("/model/vocab") || path.starts_with("/model/merges");
    if (in_lists && random() % 10) continue;
    // The part itself, or one of those that it stands in.
    for (auto at = json::json_pointer(path); !at.empty(); at = at.parent_pointer()) {
      auto changed = whole;
      changed[at] = others[random() % std::size(others)];
      expect_an_answer(directory_.path(), changed.dump());
      if (random() % 2) break;
    }
  }
}

}  // namespace
}  // namespace ferry::deepseek
