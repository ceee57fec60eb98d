// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Tokens that are found in the raw text, before anything else looks at it.
#pragma once

#include <ferry/base/result.hpp>

#include "deepseek/tokenizer/regex.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::deepseek {

struct added_token {
  std::string content;
  std::int32_t id = -1;
  bool single_word = false;  ///< only where no letter, mark, digit or underscore adjoins it
  bool lstrip = false;       ///< takes the white space before it
  bool rstrip = false;       ///< takes the white space after it
  bool normalized = false;   ///< looked for after the others, in what they left
  bool special = false;
};

/// A part of a text: an added token's id, or text between them (id -1), which is not empty.
struct text_part {
  std::string_view text;
  std::int32_t id = -1;
};

class added_tokens {
 public:
  /// Contents are distinct and not empty.
  static result<added_tokens> make(std::vector<added_token> tokens);

  /// The parts of `text` in order. At each place the longest token
  /// wins; a match that its single_word forbids is passed over as a whole.
  /// Errors   as regex::find_all
  result<std::vector<text_part>> split(std::string_view text) const;

 private:
  struct node {
    std::int32_t child = -1, sibling = -1;
    std::int32_t token = -1;  // in tokens_
    char byte = 0;
  };
  /// All strings to look for in one pass, as a tree of their bytes.
  struct tree {
    std::vector<node> nodes;
    std::array<std::int32_t, 256> roots;
    tree() { roots.fill(-1); }
    void insert(std::string_view content, std::int32_t token);
    std::int32_t longest(std::string_view text) const;
  };

  result<void> split_by(tree const& tokens, std::string_view text,
                        std::vector<text_part>& parts) const;
  result<bool> stands_alone(std::string_view before, std::string_view after) const;
  result<bool> is_word_character(std::string_view character) const;

  std::vector<added_token> tokens_;
  tree raw_, normalized_;
  std::optional<regex> word_character_;  // where a token is single_word
};

}  // namespace ferry::deepseek
