// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Byte pair encoding: a word's bytes become tokens by merging neighbours, lowest rank first.
#pragma once

#include <ferry/base/result.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ferry::deepseek {

/// `left` next to `right` may become `whole`. A merge's rank is its place in the list.
struct merge_rule {
  std::int32_t left, right, whole;
};

/// Words known as one token, whatever the merges would make of them.
struct string_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
};
using whole_words = std::unordered_map<std::string, std::int32_t, string_hash, std::equal_to<>>;

class byte_pair_encoding {
 public:
  byte_pair_encoding() = default;
  /// `byte_ids`: the token of each byte, -1 where there is none. Of two merges of the same pair the
  /// later holds.
  byte_pair_encoding(std::array<std::int32_t, 256> const& byte_ids,
                     std::vector<merge_rule> const& merges, whole_words words);

  /// Appends the tokens of one word. n log n steps for n bytes.
  /// Errors   invalid_argument a byte without a token
  result<void> encode(std::string_view word, std::vector<std::int32_t>& ids) const;

 private:
  struct merge {
    std::uint64_t pair;
    std::uint32_t rank;
    std::int32_t whole;
  };
  merge const* find(std::int32_t left, std::int32_t right) const;
  std::size_t home_of(std::uint64_t pair) const;

  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<merge> table_;  // open addressing; a power of two, at most half full
  int table_bits_ = 0;
  whole_words words_;
};

}  // namespace ferry::deepseek
