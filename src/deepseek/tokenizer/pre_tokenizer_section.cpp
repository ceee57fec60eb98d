// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/pre_tokenizer_section.hpp"

#include "base/fail.hpp"

#include <optional>
#include <utility>

namespace ferry::deepseek {

namespace {

constexpr int deepest = 16;

// How ByteLevel splits by itself: English contractions, then runs of letters, of numbers, of other
// signs, each with the space before it, then white space, whose last character stays with a word.
constexpr std::string_view byte_level_rule =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct steps {
  std::vector<split_rule> rules;
  std::optional<pre_tokenizer::byte_level> last;
};

result<split_behavior> read_behavior(json_place const& at) {
  constexpr std::pair<std::string_view, split_behavior> names[] = {
      {"Isolated", split_behavior::isolated},
      {"Removed", split_behavior::removed},
      {"MergedWithPrevious", split_behavior::merged_with_previous},
      {"MergedWithNext", split_behavior::merged_with_next},
      {"Contiguous", split_behavior::contiguous}};
  FERRY_TRY(auto text, at.text());
  for (auto& [name, behavior] : names)
    if (name == text) return behavior;
  return fail(error_code::malformed_input, "{}: '{}' is no behavior of a split", at.path, text);
}

// Whoever compiles a pattern knows what is wrong with it; the place is known here.
result<regex> compiled_at(json_place const& at, result<regex> compiled) {
  if (compiled) return compiled;
  return error{compiled.error().code, at.path + ": " + compiled.error().message,
               compiled.error().where};
}

result<regex> read_pattern(json_place const& at) {
  FERRY_TRY(auto pattern, at.find("Regex"));
  if (pattern) {
    FERRY_TRY(auto text, pattern->text());
    return compiled_at(*pattern, regex::oniguruma(text));
  }
  FERRY_TRY(auto literal, at.find("String"));
  if (literal) {
    FERRY_TRY(auto text, literal->text());
    return compiled_at(*literal, regex::literal(text));
  }
  return fail(error_code::malformed_input, "{}: neither Regex nor String", at.path);
}

result<split_rule> read_split(json_place const& at) {
  FERRY_TRY(auto pattern_at, at.at("pattern"));
  FERRY_TRY(auto pattern, read_pattern(pattern_at));
  FERRY_TRY(auto behavior_at, at.at("behavior"));
  FERRY_TRY(auto behavior, read_behavior(behavior_at));
  FERRY_TRY(bool invert, at.flag_or("invert", false));
  return split_rule{std::move(pattern), behavior, invert};
}

result<split_rule> read_digits(json_place const& at) {
  FERRY_TRY(bool individual, at.flag_or("individual_digits", false));
  FERRY_TRY(auto pattern, regex::oniguruma(R"(\p{N})"));
  auto behavior = individual ? split_behavior::isolated : split_behavior::contiguous;
  return split_rule{std::move(pattern), behavior, false};
}

result<split_rule> read_punctuation(json_place const& at) {
  FERRY_TRY(auto behavior_at, at.find("behavior"));
  auto behavior = split_behavior::isolated;
  if (behavior_at) {
    FERRY_TRY(behavior, read_behavior(*behavior_at));
  }
  FERRY_TRY(auto pattern, regex::oniguruma(R"([!-/:-@\[-`{-~\p{P}])"));
  return split_rule{std::move(pattern), behavior, false};
}

result<pre_tokenizer::byte_level> read_byte_level(json_place const& at) {
  pre_tokenizer::byte_level step;
  FERRY_TRY(step.add_prefix_space, at.flag_or("add_prefix_space", true));
  FERRY_TRY(bool use_regex, at.flag_or("use_regex", true));
  if (use_regex) {
    FERRY_TRY(step.own_rule, regex::oniguruma(byte_level_rule));
  }
  return step;
}

result<void> read_step(json_place const& at, int depth, steps& to) {
  FERRY_TRY(auto type, at.type());
  if (type == "Sequence") {
    if (depth == deepest)
      return fail(error_code::malformed_input, "{}: more than {} sequences in each other", at.path,
                  deepest);
    FERRY_TRY(auto list, at.at("pretokenizers"));
    FERRY_TRY(auto elements, list.array());
    for (std::size_t i = 0; i < elements->size(); ++i)
      FERRY_CHECK(read_step(list.element(i), depth + 1, to));
    return {};
  }
  if (to.last)
    return fail(error_code::unsupported, "{}: the pre-tokenizer {} after ByteLevel", at.path, type);
  if (type == "ByteLevel") {
    FERRY_TRY(to.last, read_byte_level(at));
    return {};
  }
  bool is_known = type == "Split" || type == "Digits" || type == "Punctuation";
  if (!is_known) return fail(error_code::unsupported, "{}: the pre-tokenizer {}", at.path, type);
  FERRY_TRY(auto rule, type == "Split"    ? read_split(at)
                       : type == "Digits" ? read_digits(at)
                                          : read_punctuation(at));
  to.rules.push_back(std::move(rule));
  return {};
}

}  // namespace

result<pre_tokenizer> read_pre_tokenizer(json_place const& section) {
  steps read;
  FERRY_CHECK(read_step(section, 0, read));
  if (!read.last)
    return fail(error_code::unsupported, "{}: no ByteLevel, so the tokens are not bytes",
                section.path);
  return pre_tokenizer(std::move(read.rules), *std::move(read.last));
}

}  // namespace ferry::deepseek
