// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/oniguruma_pattern.hpp"

#include "deepseek/tokenizer/oniguruma_translation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace ferry::deepseek {
namespace {

// Two letters that one character folds to: ignoring case, Oniguruma lets it match them.
constexpr std::string_view folded_pairs[] = {"ss", "ff", "fi", "fl", "st"};

constexpr auto nothing = std::string_view::npos;

}  // namespace

result<std::string> oniguruma_translation::run() {
  if (in_.size() > 65535)
    return fail(error_code::unsupported, "a regular expression of {} bytes; the limit is 65535",
                in_.size());
  if (valid_prefix(in_) != in_.size()) return malformed("bytes that are not UTF-8");
  scopes_.push_back({false, 0, false});
  while (!done()) FERRY_CHECK(element());
  if (scopes_.size() != 1) return malformed("a group without end");
  return std::move(out_);
}

result<void> oniguruma_translation::element() {
  char c = peek();
  if (c != '(' && c != '|') {
    bool is_letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (!is_letter) last_literal_ = 0;
    if (c != ')') alternative_begins_ = false;
  }
  switch (c) {
    case '\\': return escape();
    case '[': return character_class();
    case '(': return open_group();
    case ')': return close_group();
    case '*':
    case '+':
    case '?': return repeat();
    case '^':
    case '$': ++at_; return place(c == '^' ? "^" : "$"), result<void>{};
    case '.': ++at_; return atom("."), result<void>{};
    case '|':
      ++at_;
      alternative_begins_ = true;
      last_literal_ = 0;
      return place("|"), result<void>{};
    case '{': {
      FERRY_TRY(bool is_interval, interval());
      return is_interval ? result<void>{} : literal();
    }
    default: return literal();
  }
}

result<void> oniguruma_translation::literal() {
  auto bytes = front_of(in_.substr(at_)).bytes;
  auto text = in_.substr(at_, bytes);
  if (ignores_case()) {
    if (bytes > 1) return unsupported("a letter beyond ASCII, ignoring case,");
    char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
    std::string pair{last_literal_, lower};
    if (std::ranges::find(folded_pairs, pair) != std::end(folded_pairs))
      return unsupported("letters that one character folds to, ignoring case,");
    last_literal_ = lower;
  }
  at_ += bytes;
  bool is_sign = bytes == 1 && std::ispunct(static_cast<unsigned char>(text[0]));
  atom(is_sign ? "\\" + std::string(text) : std::string(text));
  return {};
}

// \xHH, \x{H...}, \uHHHH, from the letter on.
result<std::uint32_t> oniguruma_translation::code_point() {
  bool is_short = peek() == 'x';
  ++at_;
  bool braces = is_short && take("{");
  std::size_t most = braces ? 8 : is_short ? 2 : 4, digits = 0;
  std::uint32_t value = 0;
  for (; digits < most && std::isxdigit(static_cast<unsigned char>(peek())); ++digits, ++at_)
    value = value << 4 | static_cast<std::uint32_t>(std::stoi(std::string(1, peek()), nullptr, 16));
  bool complete = braces ? digits > 0 && take("}") : digits == most;
  if (!complete) return malformed("an incomplete number of a character");
  // \x80 and more is a byte to Oniguruma, part of a character.
  if (is_short && !braces && value > 0x7F) return unsupported("\\x of a byte beyond ASCII");
  if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
    return malformed("a number that is no character");
  return value;
}

// The character that an escape stands for, inside classes and outside; none if it is no character.
result<std::optional<std::string>> oniguruma_translation::escaped_character(char c) {
  using answer = std::optional<std::string>;
  if (c == 'x' || c == 'u') {
    FERRY_TRY(auto value, code_point());
    return answer(fmt::format("\\x{{{:x}}}", value));
  }
  if (c == 'v') return ++at_, answer("\\x0b");
  if (std::string_view("tnrfae").find(c) != nothing) return ++at_, answer(std::string{'\\', c});
  if (std::ispunct(static_cast<unsigned char>(c)) || c == ' ')
    return ++at_, answer(std::string{'\\', c});
  if (static_cast<unsigned char>(c) >= 0x80) {
    auto bytes = front_of(in_.substr(at_)).bytes;
    at_ += bytes;
    return answer(std::string(in_.substr(at_ - bytes, bytes)));
  }
  return answer();
}

result<void> oniguruma_translation::escape() {
  ++at_;
  if (done()) return malformed("a backslash");
  char c = peek();
  std::string in_word = fmt::format("[{}]", word);
  switch (c) {
    case 'd': ++at_; return atom("\\p{Nd}"), result<void>{};
    case 'D': ++at_; return atom("\\P{Nd}"), result<void>{};
    case 's': ++at_; return atom(fmt::format("[{}]", space)), result<void>{};
    case 'S': ++at_; return atom(fmt::format("[^{}]", space)), result<void>{};
    case 'w': ++at_; return atom(in_word), result<void>{};
    case 'W': ++at_; return atom(fmt::format("[^{}]", word)), result<void>{};
    case 'h': ++at_; return atom(fmt::format("[{}]", hex_digit)), result<void>{};
    case 'H': ++at_; return atom(fmt::format("[^{}]", hex_digit)), result<void>{};
    case 'b':
      ++at_;
      return place(fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", in_word)), result<void>{};
    case 'B':
      ++at_;
      return place(fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", in_word)), result<void>{};
    case 'A':
    case 'z':
    case 'Z': ++at_; return place(std::string{'\\', c}), result<void>{};
    case 'R': ++at_; return atom("\\R"), result<void>{};
    case 'p':
    case 'P': {
      FERRY_TRY(auto items, property());
      return atom(fmt::format("[{}]", items)), result<void>{};
    }
    default: break;
  }
  FERRY_TRY(auto character, escaped_character(c));
  if (!character) return unsupported(fmt::format("\\{}", c));
  return atom(*character), result<void>{};
}

result<void> oniguruma_translation::open_group() {
  auto start = out_.size();
  ++at_;
  auto open = [&](std::string_view text, bool lookaround) {
    scopes_.push_back({ignores_case(), start, lookaround});
    alternative_begins_ = true;
    last_literal_ = 0;
    return place(text), result<void>{};
  };
  if (!take("?")) return open("(", false);
  for (std::string_view around : {"=", "!", "<=", "<!"})
    if (take(around)) return open("(?" + std::string(around), true);
  if (take(":")) return open("(?:", false);
  if (take(">")) return open("(?>", false);
  if (take("#")) {
    auto end = in_.find(')', at_);
    if (end == nothing) return malformed("a comment without end");
    at_ = end + 1;
    return {};
  }
  if (take("<")) {  // a name, which nothing can refer to
    auto end = in_.find('>', at_);
    if (end == nothing || end == at_) return malformed("a group's name");
    at_ = end + 1;
    return open("(", false);
  }
  return options_group();
}

// (?im-im) for the rest of the group, (?im-im:...) for a group; from the first letter on.
result<void> oniguruma_translation::options_group() {
  bool ignore_case = ignores_case(), on = true;
  std::string pcre2 = "(?";
  for (; peek() != ')' && peek() != ':'; ++at_) {
    if (peek() == '-' && on) {
      on = false;
      pcre2 += '-';
    } else if (peek() == 'i') {
      ignore_case = on;
      pcre2 += 'i';
    } else if (peek() == 'm') {
      pcre2 += 's';  // Ruby's m lets the dot match a line's end
    } else {
      return unsupported("a group of this kind");
    }
  }
  bool is_group = peek() == ':';
  if (!is_group && !alternative_begins_) return unsupported("an option inside an alternative");
  ++at_;
  if (is_group) {
    scopes_.push_back({ignore_case, out_.size(), false});
    alternative_begins_ = true;
  } else {
    scopes_.back().ignore_case = ignore_case;
  }
  last_literal_ = 0;
  return place(pcre2 + (is_group ? ":" : ")")), result<void>{};
}

result<void> oniguruma_translation::close_group() {
  if (scopes_.size() == 1) return malformed("a closing bracket without its opening one");
  ++at_;
  out_ += ')';
  atom_ = scopes_.back().is_lookaround ? nothing : scopes_.back().start;
  atom_is_repeated_ = false;
  scopes_.pop_back();
  alternative_begins_ = false;
  return {};
}

// Ruby may repeat what is repeated already, PCRE2 only as a group.
result<void> oniguruma_translation::begin_quantifier() {
  if (atom_ == nothing) return malformed("a quantifier of nothing");
  if (atom_is_repeated_) {
    out_.insert(atom_, "(?:");
    out_ += ')';
  }
  atom_is_repeated_ = true;
  return {};
}

// * + ?, each alone, lazy (?) or possessive (+).
result<void> oniguruma_translation::repeat() {
  FERRY_CHECK(begin_quantifier());
  out_ += in_[at_++];
  if (peek() == '?' || peek() == '+') out_ += in_[at_++];
  return {};
}

// {n} {n,} {,m} {n,m}; false if it is none, and so a literal brace.
result<bool> oniguruma_translation::interval() {
  auto end = in_.find('}', at_);
  if (end == nothing) return false;
  auto inside = in_.substr(at_ + 1, end - at_ - 1);
  auto comma = inside.find(',');
  auto low = inside.substr(0, comma);
  auto high = comma == nothing ? low : inside.substr(comma + 1);
  auto is_number = [](std::string_view s) {
    return s.size() <= 5 && std::ranges::all_of(s, [](char c) { return c >= '0' && c <= '9'; });
  };
  if (!is_number(low) || !is_number(high) || (low.empty() && high.empty())) return false;
  auto least = low.empty() ? 0 : std::stoi(std::string(low));
  if (!high.empty() && std::stoi(std::string(high)) < least)
    return unsupported("a quantifier whose limits are reversed");
  FERRY_CHECK(begin_quantifier());
  at_ = end + 1;
  out_ += fmt::format("{{{}{}{}}}", least, comma == nothing ? "" : ",",
                      comma == nothing ? std::string_view() : high);
  // {n}? is an optional {n}, and {n,m}+ one or more of {n,m}: quantifiers of their own.
  if (comma != nothing && peek() == '?') out_ += in_[at_++];
  return true;
}

result<std::string> pcre2_from_oniguruma(std::string_view pattern) {
  return oniguruma_translation(pattern).run();
}

}  // namespace ferry::deepseek
