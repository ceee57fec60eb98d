// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/oniguruma_properties.hpp"
#include "deepseek/tokenizer/oniguruma_translation.hpp"

#include <fmt/format.h>

#include <cctype>

namespace ferry::deepseek {

// \p{...} as items of a class, from the p on.
result<std::string> oniguruma_translation::property() {
  bool negated = peek() == 'P';
  ++at_;
  if (!take("{")) return unsupported("\\p without braces");
  if (take("^")) negated = !negated;
  auto end = in_.find('}', at_);
  if (end == std::string_view::npos) return malformed("a property without end");
  std::string name;
  for (char c : in_.substr(at_, end - at_)) {
    if (c == ' ' || c == '-' || c == '_') continue;
    if (!std::isalnum(static_cast<unsigned char>(c))) return malformed("a property's name");
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (property_is_disputed(name)) return unsupported(fmt::format("the property {}", name));
  if (name == "space" || name == "whitespace") {
    at_ = end + 1;
    return std::string(negated ? not_space : space);
  }
  std::string known(pcre2_property(name));
  bool has_case = known == "Lu" || known == "Ll" || known == "Lt" || known == "Uppercase" ||
                  known == "Lowercase";
  if (has_case && ignores_case())
    return unsupported(fmt::format("the property {}, ignoring case,", name));
  // Any other name is a script's; PCRE2 would also take the characters that scripts share.
  if (known.empty()) known = "sc:" + name;
  at_ = end + 1;
  return fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', known);
}

result<void> oniguruma_translation::character_class() {
  atom("[");
  ++at_;
  if (take("^")) out_ += '^';
  if (peek() == ']') return unsupported("a class that begins with ]");
  while (peek() != ']' || done()) {
    if (done()) return malformed("a class without end");
    FERRY_CHECK(class_item());
  }
  ++at_;
  out_ += ']';
  return {};
}

result<void> oniguruma_translation::class_item() {
  FERRY_TRY(auto set, class_set());
  if (set) {
    out_ += *set;
    return {};
  }
  FERRY_TRY(auto low, class_character());
  out_ += low;
  bool is_range = peek() == '-' && at_ + 1 < in_.size() && peek(1) != ']';
  if (!is_range) return {};
  ++at_;
  FERRY_TRY(auto ends_in_set, class_set());
  if (ends_in_set) return unsupported("a range that ends in a class");
  FERRY_TRY(auto high, class_character());
  out_ += '-' + high;
  return {};
}

// An escape that stands for many characters; none if there is one character.
result<std::optional<std::string>> oniguruma_translation::class_set() {
  using answer = std::optional<std::string>;
  if (peek() != '\\') return answer();
  switch (peek(1)) {
    case 'd': at_ += 2; return answer("\\p{Nd}");
    case 'D': at_ += 2; return answer("\\P{Nd}");
    case 's': at_ += 2; return answer(space);
    case 'S': at_ += 2; return answer(not_space);
    case 'w': at_ += 2; return answer(word);
    case 'h': at_ += 2; return answer(hex_digit);
    case 'p':
    case 'P': {
      ++at_;
      FERRY_TRY(auto items, property());
      return answer(std::move(items));
    }
    default: return answer();
  }
}

result<std::string> oniguruma_translation::class_character() {
  char c = peek();
  if (c == '[') return unsupported("a class inside a class");
  if (c == '&' && peek(1) == '&') return unsupported("&& in a class");
  if (c == '\\') {
    ++at_;
    if (done()) return malformed("a backslash");
    if (take("b")) return std::string("\\x08");
    FERRY_TRY(auto character, escaped_character(peek()));
    if (!character) return unsupported(fmt::format("\\{} in a class", peek()));
    return *character;
  }
  auto bytes = front_of(in_.substr(at_)).bytes;
  at_ += bytes;
  auto text = std::string(in_.substr(at_ - bytes, bytes));
  return bytes == 1 && std::ispunct(static_cast<unsigned char>(c)) ? "\\" + text : text;
}

}  // namespace ferry::deepseek
