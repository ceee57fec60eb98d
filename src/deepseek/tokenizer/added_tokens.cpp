// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/added_tokens.hpp"

#include "files/utf8.hpp"

#include <algorithm>

namespace ferry::deepseek {

namespace {

bool is_white_space(std::uint32_t c) {
  return (c >= '\t' && c <= '\r') || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

std::size_t white_space_at_front(std::string_view text) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    auto front = front_of(text.substr(bytes));
    if (front.what != utf8_front::kind::character || !is_white_space(front.code_point)) break;
    bytes += front.bytes;
  }
  return bytes;
}

std::size_t white_space_at_end(std::string_view text) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    auto last = last_character(text.substr(0, text.size() - bytes));
    if (last.empty() || !is_white_space(front_of(last).code_point)) break;
    bytes += last.size();
  }
  return bytes;
}

}  // namespace

void added_tokens::tree::insert(std::string_view content, std::int32_t token) {
  // An index, not a pointer: nodes move when their vector grows.
  auto link_value = [&](std::int32_t parent, unsigned char byte) -> std::int32_t {
    auto at = parent < 0 ? roots[byte] : nodes[static_cast<std::size_t>(parent)].child;
    while (at >= 0 && nodes[static_cast<std::size_t>(at)].byte != static_cast<char>(byte))
      at = nodes[static_cast<std::size_t>(at)].sibling;
    return at;
  };
  std::int32_t parent = -1;
  for (char c : content) {
    auto byte = static_cast<unsigned char>(c);
    auto at = link_value(parent, byte);
    if (at < 0) {
      at = static_cast<std::int32_t>(nodes.size());
      node fresh{.byte = c};
      if (parent < 0) {
        roots[byte] = at;
      } else {
        fresh.sibling = std::exchange(nodes[static_cast<std::size_t>(parent)].child, at);
      }
      nodes.push_back(fresh);
    }
    parent = at;
  }
  nodes[static_cast<std::size_t>(parent)].token = token;
}

std::int32_t added_tokens::tree::longest(std::string_view text) const {
  std::int32_t found = -1;
  auto at = roots[static_cast<unsigned char>(text[0])];
  for (std::size_t i = 1; at >= 0; ++i) {
    auto& here = nodes[static_cast<std::size_t>(at)];
    if (here.token >= 0) found = here.token;
    if (i == text.size()) break;
    at = here.child;
    while (at >= 0 && nodes[static_cast<std::size_t>(at)].byte != text[i])
      at = nodes[static_cast<std::size_t>(at)].sibling;
  }
  return found;
}

result<added_tokens> added_tokens::make(std::vector<added_token> tokens) {
  added_tokens made;
  made.tokens_ = std::move(tokens);
  for (std::size_t i = 0; i < made.tokens_.size(); ++i) {
    auto& t = made.tokens_[i];
    (t.normalized ? made.normalized_ : made.raw_).insert(t.content, static_cast<std::int32_t>(i));
  }
  if (std::ranges::any_of(made.tokens_, &added_token::single_word)) {
    // What counts as part of a word here has the two joiners as well.
    FERRY_TRY(made.word_character_, regex::oniguruma(R"([\w\u200c\u200d])"));
  }
  return made;
}

result<bool> added_tokens::is_word_character(std::string_view character) const {
  if (character.empty()) return false;
  FERRY_TRY(auto matches, word_character_->find_all(character));
  return !matches.empty();
}

result<bool> added_tokens::stands_alone(std::string_view before, std::string_view after) const {
  FERRY_TRY(bool joined_before, is_word_character(last_character(before)));
  if (joined_before || after.empty()) return !joined_before;
  auto front = front_of(after);
  if (front.what != utf8_front::kind::character) return true;
  FERRY_TRY(bool joined_after, is_word_character(after.substr(0, front.bytes)));
  return !joined_after;
}

result<void> added_tokens::split_by(tree const& tokens, std::string_view text,
                                    std::vector<text_part>& parts) const {
  std::size_t taken = 0;  // what stands before it is in `parts`
  for (std::size_t at = 0; at < text.size();) {
    auto found = tokens.longest(text.substr(at));
    if (found < 0) {
      ++at;
      continue;
    }
    auto& token = tokens_[static_cast<std::size_t>(found)];
    auto begin = at, end = at + token.content.size();
    at = end;
    if (token.single_word) {
      FERRY_TRY(bool alone, stands_alone(text.substr(0, begin), text.substr(end)));
      if (!alone) continue;
    }
    // Space before it stays with the token before, if that has taken it.
    if (token.lstrip) begin = std::max(begin - white_space_at_end(text.substr(0, begin)), taken);
    if (token.rstrip) end += white_space_at_front(text.substr(end));
    if (begin > taken) parts.push_back({text.substr(taken, begin - taken), -1});
    parts.push_back({{}, token.id});
    // A token of white space may stand inside what rstrip took; text then goes on after it.
    taken = end;
  }
  if (taken < text.size()) parts.push_back({text.substr(taken), -1});
  return {};
}

result<std::vector<text_part>> added_tokens::split(std::string_view text) const {
  std::vector<text_part> first, parts;
  FERRY_CHECK(split_by(raw_, text, first));
  for (auto& part : first) {
    if (part.id >= 0)
      parts.push_back(part);
    else
      FERRY_CHECK(split_by(normalized_, part.text, parts));
  }
  return parts;
}

}  // namespace ferry::deepseek
