// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How a text is cut into words before byte pair encoding.
#pragma once

#include <ferry/base/result.hpp>

#include "deepseek/tokenizer/regex.hpp"

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace ferry::deepseek {

/// What becomes of a match when a text is split at it.
enum class split_behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

struct split_rule {
  regex pattern;
  split_behavior behavior = split_behavior::isolated;
  bool invert = false;  ///< what lies between the matches is the match
};

/// A list of split rules, each applied to every piece that the one before left, and the byte-level
/// step at its end.
class pre_tokenizer {
 public:
  struct byte_level {
    bool add_prefix_space = false;  ///< before every piece that begins with none
    std::optional<regex> own_rule;  ///< its own way of splitting, after that
  };

  pre_tokenizer(std::vector<split_rule> rules, byte_level last)
      : rules_(std::move(rules)), last_(std::move(last)) {}

  /// Calls `word` with each word of `text`, valid UTF-8, in order.
  /// Errors   as regex::find_all; the first that `word` returns
  result<void> split(std::string_view text,
                     std::function<result<void>(std::string_view)> const& word) const;

 private:
  std::vector<split_rule> rules_;
  byte_level last_;
};

/// The pieces of `text` under one rule, none empty.
result<void> split_by(split_rule const& rule, std::string_view text,
                      std::vector<std::string_view>& pieces);

}  // namespace ferry::deepseek
