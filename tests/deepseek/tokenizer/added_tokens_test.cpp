// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/added_tokens.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ferry::deepseek {
namespace {

using strings = std::vector<std::string>;

// The parts of a text, tokens as <id>.
strings parts_of(std::vector<added_token> tokens, std::string_view text) {
  auto added = added_tokens::make(std::move(tokens)).value();
  strings shown;
  auto parts = added.split(text).value();
  for (auto& part : parts)
    shown.push_back(part.id < 0 ? std::string(part.text) : "<" + std::to_string(part.id) + ">");
  return shown;
}

TEST(added_tokens, are_found_anywhere_longest_first) {
  std::vector<added_token> tokens{{.content = "ab", .id = 1}, {.content = "abcd", .id = 2}};
  EXPECT_EQ(parts_of(tokens, "xabcabcdab"), (strings{"x", "<1>", "c", "<2>", "<1>"}));
  EXPECT_EQ(parts_of(tokens, "abc"), (strings{"<1>", "c"}));
  EXPECT_EQ(parts_of(tokens, ""), strings{});
  EXPECT_EQ(parts_of({}, "ab"), (strings{"ab"}));
}

TEST(added_tokens, start_as_far_left_as_they_can) {
  EXPECT_EQ(parts_of({{.content = "ab", .id = 1}, {.content = "bcde", .id = 2}}, "abcde"),
            (strings{"<1>", "cde"}));
}

TEST(added_tokens, that_are_normalized_get_what_the_others_leave) {
  EXPECT_EQ(parts_of({{.content = "abc", .id = 1, .normalized = true}, {.content = "bc", .id = 2}},
                     "abc abx"),
            (strings{"a", "<2>", " abx"}));
}

TEST(added_tokens, take_the_white_space_that_they_strip) {
  EXPECT_EQ(parts_of({{.content = "|", .id = 1, .lstrip = true}}, "a \u3000| b"),
            (strings{"a", "<1>", " b"}));
  EXPECT_EQ(parts_of({{.content = "|", .id = 1, .rstrip = true}}, "a | \n\u2028b"),
            (strings{"a ", "<1>", "b"}));
  EXPECT_EQ(parts_of({{.content = "|", .id = 1, .lstrip = true, .rstrip = true}}, " | | "),
            (strings{"<1>", "<1>"}));
}

TEST(added_tokens, that_are_single_words_stand_alone) {
  std::vector<added_token> tokens{{.content = "ab", .id = 1, .single_word = true}};
  EXPECT_EQ(parts_of(tokens, "ab xab aby ab_ (ab) éab ab\u0301"),
            (strings{"<1>", " xab aby ab_ (", "<1>", ") éab ab\u0301"}));
  EXPECT_EQ(parts_of(tokens, "ab\u200d"), (strings{"ab\u200d"}));
  EXPECT_EQ(parts_of(tokens,
                     "\xff"
                     "ab\xff"),
            (strings{"\xff", "<1>", "\xff"}));
  // What a refused match covers is not searched again.
  EXPECT_EQ(parts_of({{.content = "ab", .id = 1, .single_word = true}, {.content = "b", .id = 2}},
                     "xab b"),
            (strings{"xab ", "<2>"}));
}

TEST(added_tokens, of_white_space_stand_inside_what_the_one_before_strips) {
  EXPECT_EQ(
      parts_of({{.content = "|", .id = 1, .rstrip = true}, {.content = "  ", .id = 2}}, "|   a"),
      (strings{"<1>", "<2>", " a"}));
}

}  // namespace
}  // namespace ferry::deepseek
