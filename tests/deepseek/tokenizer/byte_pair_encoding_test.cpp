// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/byte_pair_encoding.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace ferry::deepseek {
namespace {

using ids = std::vector<std::int32_t>;

std::array<std::int32_t, 256> own_ids() {
  std::array<std::int32_t, 256> of_bytes;
  std::iota(of_bytes.begin(), of_bytes.end(), 0);
  return of_bytes;
}

ids encoded(byte_pair_encoding const& merging, std::string_view word) {
  ids tokens;
  merging.encode(word, tokens).value();
  return tokens;
}

// The definition, word for word: while there is a pair that may merge, merge the leftmost of the
// lowest rank.
ids merged_one_by_one(std::vector<merge_rule> const& merges, std::string_view word) {
  ids tokens;
  for (char c : word) tokens.push_back(static_cast<unsigned char>(c));
  for (;;) {
    std::size_t best = merges.size(), at = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      for (std::size_t rank = 0; rank < best; ++rank)
        if (merges[rank].left == tokens[i] && merges[rank].right == tokens[i + 1]) {
          best = rank;
          at = i;
        }
    if (best == merges.size()) return tokens;
    tokens[at] = merges[best].whole;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(byte_pair_encoding, merges_as_the_definition_does) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    std::vector<merge_rule> merges;
    std::map<std::pair<std::int32_t, std::int32_t>, bool> known;
    ids symbols{'a', 'b', 'c'};
    for (std::int32_t next = 256; next < 256 + 3 + round; ++next) {
      auto left = symbols[random() % symbols.size()], right = symbols[random() % symbols.size()];
      if (std::exchange(known[{left, right}], true)) continue;
      merges.push_back({left, right, next});
      symbols.push_back(next);
    }
    byte_pair_encoding merging(own_ids(), merges, {});
    for (int i = 0; i < 40; ++i) {
      std::string word;
      for (auto left = random() % 40; left > 0; --left)
        word += static_cast<char>('a' + random() % 3);
      EXPECT_EQ(encoded(merging, word), merged_one_by_one(merges, word)) << word;
    }
  }
}

TEST(byte_pair_encoding, lets_the_later_of_two_equal_merges_hold) {
  byte_pair_encoding merging(own_ids(), {{'a', 'b', 300}, {'b', 'c', 301}, {'a', 'b', 302}}, {});
  EXPECT_EQ(encoded(merging, "abc"), (ids{'a', 301}));
  EXPECT_EQ(encoded(merging, "ab"), (ids{302}));
}

TEST(byte_pair_encoding, takes_known_words_whole) {
  whole_words words{{"abc", 300}};
  byte_pair_encoding merging(own_ids(), {{'b', 'c', 301}}, words);
  EXPECT_EQ(encoded(merging, "abc"), (ids{300}));
  EXPECT_EQ(encoded(merging, "abcd"), (ids{'a', 301, 'd'}));
}

TEST(byte_pair_encoding, names_a_byte_without_token) {
  auto of_bytes = own_ids();
  of_bytes[0xE9] = -1;
  byte_pair_encoding merging(of_bytes, {}, {});
  ids tokens;
  auto done = merging.encode("a\xE9", tokens);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, error_code::invalid_argument);
  EXPECT_NE(done.error().message.find("0xe9"), std::string::npos);
}

}  // namespace
}  // namespace ferry::deepseek
