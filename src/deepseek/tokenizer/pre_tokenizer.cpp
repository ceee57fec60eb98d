// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/pre_tokenizer.hpp"

#include <algorithm>
#include <string>

namespace ferry::deepseek {

namespace {

struct piece {
  text_range at;
  bool is_match;
};

// The whole text, as matches and what lies between them.
std::vector<piece> pieces_of(std::vector<text_range> const& matches, std::size_t text_bytes,
                             bool invert) {
  std::vector<piece> pieces;
  pieces.reserve(matches.size() * 2 + 1);
  std::size_t end = 0;
  for (auto& match : matches) {
    if (match.begin > end) pieces.push_back({{end, match.begin}, invert});
    pieces.push_back({match, !invert});
    end = match.end;
  }
  if (end < text_bytes) pieces.push_back({{end, text_bytes}, invert});
  return pieces;
}

// A match joins the piece before it; of two matches in a row only the first does.
void merge_with_previous(std::vector<piece>& pieces) {
  std::vector<piece> merged;
  bool after_match = false;
  for (auto& p : pieces) {
    if (p.is_match && !after_match && !merged.empty())
      merged.back().at.end = p.at.end;
    else
      merged.push_back(p);
    after_match = p.is_match;
  }
  pieces = std::move(merged);
}

// The mirror image: of two matches in a row only the last joins the piece after it.
void merge_with_next(std::vector<piece>& pieces) {
  std::vector<piece> merged;
  bool before_match = false;
  std::ranges::reverse(pieces);
  for (auto& p : pieces) {
    if (p.is_match && !before_match && !merged.empty())
      merged.back().at.begin = p.at.begin;
    else
      merged.push_back(p);
    before_match = p.is_match;
  }
  std::ranges::reverse(merged);
  pieces = std::move(merged);
}

void merge_runs(std::vector<piece>& pieces) {
  std::vector<piece> merged;
  for (auto& p : pieces) {
    if (!merged.empty() && merged.back().is_match == p.is_match)
      merged.back().at.end = p.at.end;
    else
      merged.push_back(p);
  }
  pieces = std::move(merged);
}

}  // namespace

result<void> split_by(split_rule const& rule, std::string_view text,
                      std::vector<std::string_view>& pieces) {
  FERRY_TRY(auto matches, rule.pattern.find_all(text));
  auto parts = pieces_of(matches, text.size(), rule.invert);
  switch (rule.behavior) {
    case split_behavior::isolated: break;
    case split_behavior::removed:
      std::erase_if(parts, [](piece const& p) { return p.is_match; });
      break;
    case split_behavior::merged_with_previous: merge_with_previous(parts); break;
    case split_behavior::merged_with_next: merge_with_next(parts); break;
    case split_behavior::contiguous: merge_runs(parts); break;
  }
  for (auto& part : parts)
    if (part.at.end > part.at.begin)
      pieces.push_back(text.substr(part.at.begin, part.at.end - part.at.begin));
  return {};
}

result<void> pre_tokenizer::split(std::string_view text,
                                  std::function<result<void>(std::string_view)> const& word) const {
  if (text.empty()) return {};
  std::vector<std::string_view> pieces{text}, finer;
  for (auto& rule : rules_) {
    finer.clear();
    for (auto piece_text : pieces) FERRY_CHECK(split_by(rule, piece_text, finer));
    pieces.swap(finer);
  }
  std::string with_space;
  for (auto piece_text : pieces) {
    if (last_.add_prefix_space && !piece_text.starts_with(' ')) {
      with_space.assign(1, ' ').append(piece_text);
      piece_text = with_space;
    }
    if (!last_.own_rule) {
      FERRY_CHECK(word(piece_text));
      continue;
    }
    FERRY_TRY(auto matches, last_.own_rule->find_all(piece_text));
    for (auto& part : pieces_of(matches, piece_text.size(), false))
      FERRY_CHECK(word(piece_text.substr(part.at.begin, part.at.end - part.at.begin)));
  }
  return {};
}

}  // namespace ferry::deepseek
