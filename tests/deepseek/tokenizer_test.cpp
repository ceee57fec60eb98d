// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/tokenizer.hpp>

#include "data/sanitized.hpp"
#include "deepseek/tokenizer/tokenizer_directory.hpp"

#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

namespace ferry::deepseek {
namespace {

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
  constexpr std::size_t length = test::is_sanitized ? 1 << 18 : 1 << 20;
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

}  // namespace
}  // namespace ferry::deepseek
