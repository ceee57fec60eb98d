// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// One pattern on its way from Oniguruma's syntax to PCRE2's: what oniguruma_pattern.cpp does with
/// elements, and oniguruma_class.cpp with classes of characters.
#pragma once

#include <ferry/base/result.hpp>

#include "base/fail.hpp"
#include "files/utf8.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::deepseek {

// Items of classes. PCRE2's own \s also has U+180E, its \w lacks marks and has all numbers.
inline constexpr std::string_view space =
    R"(\t-\r\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
inline constexpr std::string_view not_space =
    R"(\x{0}-\x08\x0e-\x1f\x21-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
inline constexpr std::string_view word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
inline constexpr std::string_view hex_digit = "0-9A-Fa-f";

class oniguruma_translation {
 public:
  explicit oniguruma_translation(std::string_view pattern) : in_(pattern) {}
  result<std::string> run();

 private:
  struct scope {
    bool ignore_case;
    std::size_t start;   // where the group begins in out_
    bool is_lookaround;  // Ruby repeats none
  };

  bool done() const { return at_ == in_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : 0; }
  bool take(std::string_view text) {
    if (in_.substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  bool ignores_case() const { return scopes_.back().ignore_case; }
  void atom(std::string_view text) {
    atom_ = out_.size();
    atom_is_repeated_ = false;
    out_ += text;
  }
  void place(std::string_view text) {  // matches a place, not a character
    atom_ = std::string_view::npos;
    out_ += text;
  }
  error unsupported(std::string_view what) const {
    return fail(error_code::unsupported, "{} at byte {} of the regular expression {}", what, at_,
                shown());
  }
  error malformed(std::string_view what) const {
    return fail(error_code::malformed_input, "{} at byte {} of the regular expression {}", what,
                at_, shown());
  }
  std::string_view shown() const { return in_.substr(0, valid_prefix(in_.substr(0, 120))); }

  result<void> element();
  result<void> literal();
  result<void> escape();
  result<void> open_group();
  result<void> options_group();
  result<void> close_group();
  result<void> repeat();
  result<bool> interval();
  result<void> begin_quantifier();
  result<void> character_class();
  result<void> class_item();
  result<std::string> class_character();
  result<std::optional<std::string>> class_set();
  result<std::string> property();
  result<std::uint32_t> code_point();
  result<std::optional<std::string>> escaped_character(char c);

  std::string_view in_;
  std::size_t at_ = 0;
  std::string out_;
  std::vector<scope> scopes_;
  std::size_t atom_ =
      std::string_view::npos;      // where in out_ that begins which a quantifier would repeat
  bool atom_is_repeated_ = false;  // and whether one does so already
  bool alternative_begins_ =
      true;                // std::string_view::npos yet since the pattern's or group's start or a |
  char last_literal_ = 0;  // the ASCII letter just before, lower case
};

}  // namespace ferry::deepseek
