// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What a tokenizer's files may not say, and files that are broken.
#include "deepseek/tokenizer/tokenizer_directory.hpp"

#include <random>

namespace ferry::deepseek {
namespace {

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
