// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/oniguruma_pattern.hpp"

#include "base/fail.hpp"
#include "files/utf8.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <vector>

namespace ferry::deepseek {

namespace {

// Items of classes. PCRE2's own \s also has U+180E, its \w lacks marks and has all numbers.
constexpr std::string_view space =
    R"(\t-\r\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view not_space =
    R"(\x{0}-\x08\x0e-\x1f\x21-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view hex_digit = "0-9A-Fa-f";

struct property_name {
  std::string_view spelled, pcre2;
};

// General categories by their short names, which both libraries share, and by their long ones.
constexpr std::string_view categories[] = {
    "C",  "Cc", "Cf", "Cn", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",
    "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi",
    "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs", "Any"};
constexpr property_name long_names[] = {{"letter", "L"},
                                        {"uppercaseletter", "Lu"},
                                        {"lowercaseletter", "Ll"},
                                        {"titlecaseletter", "Lt"},
                                        {"modifierletter", "Lm"},
                                        {"otherletter", "Lo"},
                                        {"mark", "M"},
                                        {"nonspacingmark", "Mn"},
                                        {"spacingmark", "Mc"},
                                        {"enclosingmark", "Me"},
                                        {"number", "N"},
                                        {"decimalnumber", "Nd"},
                                        {"letternumber", "Nl"},
                                        {"othernumber", "No"},
                                        {"punctuation", "P"},
                                        {"symbol", "S"},
                                        {"mathsymbol", "Sm"},
                                        {"currencysymbol", "Sc"},
                                        {"modifiersymbol", "Sk"},
                                        {"othersymbol", "So"},
                                        {"separator", "Z"},
                                        {"spaceseparator", "Zs"},
                                        {"lineseparator", "Zl"},
                                        {"paragraphseparator", "Zp"},
                                        {"other", "C"},
                                        {"control", "Cc"},
                                        {"format", "Cf"},
                                        {"digit", "Nd"},
                                        {"alpha", "Alphabetic"},
                                        {"alphabetic", "Alphabetic"},
                                        {"upper", "Uppercase"},
                                        {"uppercase", "Uppercase"},
                                        {"lower", "Lowercase"},
                                        {"lowercase", "Lowercase"}};
// What the two libraries, or two versions of one, define differently.
constexpr std::string_view disputed[] = {"punct",  "graph", "print", "cntrl", "blank",
                                         "xdigit", "alnum", "ascii", "word"};

// Two letters that one character folds to: ignoring case, Oniguruma lets it match them.
constexpr std::string_view folded_pairs[] = {"ss", "ff", "fi", "fl", "st"};

constexpr auto nothing = std::string_view::npos;

class translation {
 public:
  explicit translation(std::string_view pattern) : in_(pattern) {}
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
    atom_ = nothing;
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
  std::size_t atom_ = nothing;      // where in out_ that begins which a quantifier would repeat
  bool atom_is_repeated_ = false;   // and whether one does so already
  bool alternative_begins_ = true;  // nothing yet since the pattern's or group's start or a |
  char last_literal_ = 0;           // the ASCII letter just before, lower case
};

result<std::string> translation::run() {
  if (in_.size() > 65535)
    return fail(error_code::unsupported, "a regular expression of {} bytes; the limit is 65535",
                in_.size());
  if (valid_prefix(in_) != in_.size()) return malformed("bytes that are not UTF-8");
  scopes_.push_back({false, 0, false});
  while (!done()) FERRY_CHECK(element());
  if (scopes_.size() != 1) return malformed("a group without end");
  return std::move(out_);
}

result<void> translation::element() {
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

result<void> translation::literal() {
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
result<std::uint32_t> translation::code_point() {
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
result<std::optional<std::string>> translation::escaped_character(char c) {
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

result<void> translation::escape() {
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

// \p{...} as items of a class, from the p on.
result<std::string> translation::property() {
  bool negated = peek() == 'P';
  ++at_;
  if (!take("{")) return unsupported("\\p without braces");
  if (take("^")) negated = !negated;
  auto end = in_.find('}', at_);
  if (end == nothing) return malformed("a property without end");
  std::string name;
  for (char c : in_.substr(at_, end - at_)) {
    if (c == ' ' || c == '-' || c == '_') continue;
    if (!std::isalnum(static_cast<unsigned char>(c))) return malformed("a property's name");
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (std::ranges::find(disputed, name) != std::end(disputed))
    return unsupported(fmt::format("the property {}", name));
  if (name == "space" || name == "whitespace") {
    at_ = end + 1;
    return std::string(negated ? not_space : space);
  }
  std::string known;
  for (auto category : categories)
    if (std::ranges::equal(category, name, {}, [](unsigned char c) { return std::tolower(c); }))
      known = category;
  for (auto& [spelled, pcre2] : long_names)
    if (spelled == name) known = pcre2;
  bool has_case = known == "Lu" || known == "Ll" || known == "Lt" || known == "Uppercase" ||
                  known == "Lowercase";
  if (has_case && ignores_case())
    return unsupported(fmt::format("the property {}, ignoring case,", name));
  // Any other name is a script's; PCRE2 would also take the characters that scripts share.
  if (known.empty()) known = "sc:" + name;
  at_ = end + 1;
  return fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', known);
}

result<void> translation::open_group() {
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
result<void> translation::options_group() {
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

result<void> translation::close_group() {
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
result<void> translation::begin_quantifier() {
  if (atom_ == nothing) return malformed("a quantifier of nothing");
  if (atom_is_repeated_) {
    out_.insert(atom_, "(?:");
    out_ += ')';
  }
  atom_is_repeated_ = true;
  return {};
}

// * + ?, each alone, lazy (?) or possessive (+).
result<void> translation::repeat() {
  FERRY_CHECK(begin_quantifier());
  out_ += in_[at_++];
  if (peek() == '?' || peek() == '+') out_ += in_[at_++];
  return {};
}

// {n} {n,} {,m} {n,m}; false if it is none, and so a literal brace.
result<bool> translation::interval() {
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

result<void> translation::character_class() {
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

result<void> translation::class_item() {
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
result<std::optional<std::string>> translation::class_set() {
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

result<std::string> translation::class_character() {
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

}  // namespace

result<std::string> pcre2_from_oniguruma(std::string_view pattern) {
  return translation(pattern).run();
}

}  // namespace ferry::deepseek
