// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/regex.hpp"

#include "deepseek/tokenizer/oniguruma_pattern.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace ferry::deepseek {
namespace {

using strings = std::vector<std::string>;

strings matches_of(std::string_view pattern, std::string_view text) {
  strings found;
  auto compiled = regex::oniguruma(pattern).value();
  auto ranges = compiled.find_all(text).value();
  for (auto& at : ranges) found.emplace_back(text.substr(at.begin, at.end - at.begin));
  return found;
}

error_code refusal_of(std::string_view pattern) {
  auto compiled = regex::oniguruma(pattern);
  EXPECT_FALSE(compiled.has_value()) << pattern;
  return compiled ? error_code::internal : compiled.error().code;
}

TEST(regex, knows_letters_marks_and_numbers_of_all_scripts) {
  EXPECT_EQ(matches_of(R"(\p{L}+)", "aé1日本ж"), (strings{"aé", "日本ж"}));
  EXPECT_EQ(matches_of(R"([\p{L}\p{M}]+)", "e\u0301 a"), (strings{"e\u0301", "a"}));
  EXPECT_EQ(matches_of(R"(\p{N}{1,3})", "12345½٣"), (strings{"123", "45½", "٣"}));
  EXPECT_EQ(matches_of(R"(\p{^L}+|\p{Decimal_Number})", "a1-b"), (strings{"1-"}));
}

TEST(regex, takes_white_space_for_what_unicode_says) {
  // U+180E was white space once, and PCRE2's own \s still has it.
  EXPECT_EQ(matches_of(R"(\s+)", "a\u00a0\u3000b\u180ec\u2028"),
            (strings{"\u00a0\u3000", "\u2028"}));
  EXPECT_EQ(matches_of(R"(\S+)", "a\u180eb c"), (strings{"a\u180eb", "c"}));
  EXPECT_EQ(matches_of(R"([^\s]+)", "a\u180eb\u0085c"), (strings{"a\u180eb", "c"}));
  EXPECT_EQ(matches_of(R"([\Sx]+)", "a\u180eb\u0085c"), (strings{"a\u180eb", "c"}));
  EXPECT_EQ(matches_of(R"([\s\-z]+)", "a-z b"), (strings{"-z "}));
}

TEST(regex, takes_words_to_have_marks_and_connectors_but_no_other_numbers) {
  EXPECT_EQ(matches_of(R"(\w+)", "e\u0301\u203fa_1²"), (strings{"e\u0301\u203fa_1"}));
  EXPECT_EQ(matches_of(R"(\W)", "a²b"), (strings{"²"}));
  EXPECT_EQ(matches_of(R"(\be\u0301\b)", "e\u0301 xe\u0301"), (strings{"e\u0301"}));
}

TEST(regex, reads_escapes_as_oniguruma_does) {
  EXPECT_EQ(matches_of(R"(\h+)", "\tAf0g"), (strings{"Af0"}));
  EXPECT_EQ(matches_of(R"(\v)", "\n\v\u2028"), (strings{"\v"}));
  EXPECT_EQ(matches_of(R"([\u3041-\u3096]|\x41|\x{1F600})", "ひA😀b"), (strings{"ひ", "A", "😀"}));
  EXPECT_EQ(matches_of(R"([\b])", "a\bb"), (strings{"\b"}));
  EXPECT_EQ(matches_of(R"(\p{Han}+)", "漢ー、字"),
            (strings{"漢", "字"}));  // not what scripts share
}

TEST(regex, reads_lines_and_dots_as_ruby_does) {
  EXPECT_EQ(matches_of("^.", "ab\ncd\n"), (strings{"a", "c"}));
  EXPECT_EQ(matches_of(".$", "ab\r\ncd"), (strings{"\r", "d"}));
  EXPECT_EQ(matches_of("(?m:b.c)|b.c", "b\nc"), (strings{"b\nc"}));
}

TEST(regex, reads_quantifiers_as_ruby_does) {
  EXPECT_EQ(matches_of("a{2}?", "aaa"), (strings{"aa", ""}));  // optional, not lazy
  EXPECT_EQ(matches_of("a{1,2}?", "aa"), (strings{"a", "a"}));
  EXPECT_EQ(matches_of("a{,2}b", "aaab"), (strings{"aab"}));
  EXPECT_EQ(matches_of("[a-c]{1,2}+c", "ababc"), (strings{"ababc"}));  // greedy, not possessive
  EXPECT_EQ(matches_of("[ab]++b", "abab"), strings{});                 // possessive
  EXPECT_EQ(matches_of("(?:ab){2}+", "ababababab"), (strings{"abababab"}));
  EXPECT_EQ(matches_of("a{x}|{|}", "a{x}}"), (strings{"a{x}", "}"}));
}

TEST(regex, ignores_case_where_it_is_told_to) {
  EXPECT_EQ(matches_of("(?i:'s|'ll)|x", "'S'lL'm X"), (strings{"'S", "'lL"}));
  EXPECT_EQ(matches_of("(?i)the|a", "The A"), (strings{"The", "A"}));
  EXPECT_EQ(refusal_of("a(?i)b|c"), error_code::unsupported);  // Ruby's scope is another
  EXPECT_EQ(refusal_of("(?i:ss)"), error_code::unsupported);   // would match one letter, too
  EXPECT_EQ(refusal_of(R"((?i)\p{Lu})"), error_code::unsupported);
}

TEST(regex, finds_empty_matches_but_not_where_one_has_just_ended) {
  EXPECT_EQ(matches_of("x*", "axxb"), (strings{"", "xx", ""}));
  EXPECT_EQ(matches_of("(?=日)", "日本日"), (strings{"", ""}));
  EXPECT_EQ(matches_of("", "日a"), (strings{"", "", ""}));
  EXPECT_EQ(matches_of("a|", ""), (strings{""}));
}

TEST(regex, looks_behind_where_its_last_match_ended) {
  EXPECT_EQ(matches_of("a|(?<=a)b", "abb"), (strings{"a", "b"}));
}

TEST(regex, refuses_what_the_two_libraries_read_differently) {
  for (auto pattern :
       {"[a[bc]]",   "[a&&b]",  "[[:alpha:]]",  "[]a]",    R"((a)\1)", R"(\k<n>)", R"(\X)",
        R"(\Qa)",    R"([\W])", R"([\H])",      R"(\xE3)", R"(\pL)",   "(?x) a",   "(?~a)",
        R"([a-\d])", "a{3,2}",  R"(\p{Punct})", R"(\G)",   "(?(1)a)",  R"(a\K)"})
    EXPECT_EQ(refusal_of(pattern), error_code::unsupported) << pattern;
}

TEST(regex, calls_malformed_what_no_library_reads) {
  for (auto pattern : {"(",           ")",         "[a",
                       "*",           "a|*",       "(?:+)",
                       "{2}",         "\\",        "[\\",
                       R"(\p{L)",     R"(\p{L!})", R"(\p{Klingon})",
                       R"(\u12)",     R"(\x{})",   R"(\x{110000})",
                       R"(\x{D800})", "[z-a]",     "(?<n",
                       "(?#a",        "(?<=a*)b",  "a\xff",
                       "(?=a)*"})
    EXPECT_EQ(refusal_of(pattern), error_code::malformed_input) << pattern;
  EXPECT_EQ(refusal_of(std::string(70000, 'a')), error_code::unsupported);
  EXPECT_EQ(refusal_of(std::string(1000, '(') + std::string(1000, ')')),
            error_code::malformed_input);
}

TEST(regex, answers_every_pattern_of_random_signs) {
  std::string const signs = R"(\[](){}?*+^$|-,.&:<=!#aspLiPdwxu019bm )";
  std::uint32_t state = 7;
  for (int i = 0; i < 3000; ++i) {
    std::string pattern;
    for (int k = 0; k < 12; ++k) {
      state = state * 1664525u + 1013904223u;
      pattern += signs[(state >> 16) % signs.size()];
    }
    auto compiled = regex::oniguruma(pattern);
    if (compiled) {
      auto found = compiled->find_all("a1 \n{}é日[s]");
      EXPECT_TRUE(found || found.error().code == error_code::invalid_argument) << pattern;
    } else {
      EXPECT_TRUE(compiled.error().code == error_code::malformed_input ||
                  compiled.error().code == error_code::unsupported)
          << pattern << ": " << compiled.error().message;
    }
  }
}

TEST(regex, matches_literal_text_sign_by_sign) {
  auto dot = regex::literal("a.+").value();
  EXPECT_EQ(dot.find_all("a.+ab+").value().size(), 1u);
}

TEST(regex, reports_a_rule_that_needs_too_many_steps) {
  auto bad = regex::oniguruma("(?:a+)+[bc]").value().find_all(std::string(64, 'a') + "!");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, error_code::invalid_argument);
  EXPECT_THAT(bad.error().message, testing::HasSubstr("10000000 steps"));
}

TEST(regex, goes_on_where_generated_code_runs_out_of_stack) {
  // Every turn of the group leaves something to go back to.
  std::string text(200000, 'a');
  auto found = regex::oniguruma("(?:a|ab)+[^a]").value().find_all(text + "c");
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].end, text.size() + 1);
}

TEST(regex, finds_matches_far_into_a_text) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "日";
  auto found = regex::oniguruma("x").value().find_all(text + "x" + text + "x").value();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].begin, 1500u);
  EXPECT_EQ(found[1].end, 3002u);
}

}  // namespace
}  // namespace ferry::deepseek
