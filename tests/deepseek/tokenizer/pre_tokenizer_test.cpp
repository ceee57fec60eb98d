// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/pre_tokenizer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace ferry::deepseek {
namespace {

using strings = std::vector<std::string>;

strings pieces_of(std::string_view pattern, split_behavior behavior, bool invert,
                  std::string_view text) {
  split_rule rule{regex::oniguruma(pattern).value(), behavior, invert};
  std::vector<std::string_view> pieces;
  split_by(rule, text, pieces).value();
  return {pieces.begin(), pieces.end()};
}

strings words_of(pre_tokenizer const& splitting, std::string_view text) {
  strings words;
  splitting
      .split(text,
             [&](std::string_view word) {
               words.emplace_back(word);
               return result<void>();
             })
      .value();
  return words;
}

TEST(split_rule, isolates_matches) {
  EXPECT_EQ(pieces_of("-", split_behavior::isolated, false, "a-b--c"),
            (strings{"a", "-", "b", "-", "-", "c"}));
}

TEST(split_rule, removes_matches) {
  EXPECT_EQ(pieces_of("-", split_behavior::removed, false, "-a-b--c-"), (strings{"a", "b", "c"}));
}

TEST(split_rule, merges_the_first_of_some_matches_with_what_is_before) {
  EXPECT_EQ(pieces_of("-", split_behavior::merged_with_previous, false, "the-final--countdown"),
            (strings{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(pieces_of("-", split_behavior::merged_with_previous, false, "-a"), (strings{"-", "a"}));
}

TEST(split_rule, merges_the_last_of_some_matches_with_what_is_after) {
  EXPECT_EQ(pieces_of("-", split_behavior::merged_with_next, false, "the-final--countdown"),
            (strings{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(pieces_of("-", split_behavior::merged_with_next, false, "a-"), (strings{"a", "-"}));
}

TEST(split_rule, makes_one_piece_of_contiguous_matches) {
  EXPECT_EQ(pieces_of("-", split_behavior::contiguous, false, "-a--b"),
            (strings{"-", "a", "--", "b"}));
}

TEST(split_rule, takes_what_lies_between_for_the_matches_when_inverted) {
  EXPECT_EQ(pieces_of("-", split_behavior::removed, true, "a-b--c"), (strings{"-", "-", "-"}));
  EXPECT_EQ(pieces_of("-", split_behavior::merged_with_previous, true, "-a--b"),
            (strings{"-a", "-", "-b"}));
  EXPECT_EQ(pieces_of("-", split_behavior::contiguous, true, "a--b"), (strings{"a", "--", "b"}));
}

TEST(split_rule, splits_at_matches_without_characters) {
  EXPECT_EQ(pieces_of("(?=[A-Z])", split_behavior::isolated, false, "aBcD"),
            (strings{"a", "Bc", "D"}));
}

TEST(pre_tokenizer, applies_each_rule_within_the_pieces_of_the_one_before) {
  std::vector<split_rule> rules;
  rules.push_back({regex::oniguruma("[0-9]").value()});
  rules.push_back({regex::oniguruma(R"(\s+(?!\S)|\s+|\S+)").value()});
  pre_tokenizer splitting(std::move(rules), {});
  // Before the 1 there is nothing more of the piece, so the space is not kept for a word.
  EXPECT_EQ(words_of(splitting, "a  1  b"), (strings{"a", "  ", "1", " ", " ", "b"}));
  EXPECT_EQ(words_of(splitting, ""), strings{});
}

TEST(pre_tokenizer, puts_a_space_before_pieces_without_one) {
  std::vector<split_rule> rules;
  rules.push_back({regex::oniguruma("[0-9]").value()});
  pre_tokenizer splitting(std::move(rules), {true, std::nullopt});
  EXPECT_EQ(words_of(splitting, "a1 b"), (strings{" a", " 1", " b"}));
}

TEST(pre_tokenizer, hands_on_the_error_of_a_word) {
  pre_tokenizer splitting({}, {});
  auto done = splitting.split("a", [](std::string_view) -> result<void> {
    return error{error_code::capacity, "full"};
  });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, error_code::capacity);
}

}  // namespace
}  // namespace ferry::deepseek
