// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/byte_pair_encoding.hpp"

#include "base/fail.hpp"

#include <algorithm>
#include <bit>
#include <queue>

namespace ferry::deepseek {

namespace {

constexpr std::uint64_t no_pair = ~std::uint64_t{0};

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

// A word as a list of symbols; a symbol that was merged into its left neighbour has id -1.
struct symbol {
  std::int32_t id;
  std::int32_t previous, next;  // -1 at the ends
};

struct candidate {
  std::uint32_t rank;
  std::int32_t at;           // the left symbol's place
  std::int32_t left, right;  // ids when this was found; a candidate is stale once they changed
  std::int32_t whole;
  // The queue's top is the lowest rank, leftmost first.
  bool operator<(candidate const& other) const {
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

}  // namespace

byte_pair_encoding::byte_pair_encoding(std::array<std::int32_t, 256> const& byte_ids,
                                       std::vector<merge_rule> const& merges, whole_words words)
    : byte_ids_(byte_ids), words_(std::move(words)) {
  auto slots = std::bit_ceil(std::max<std::size_t>(2, merges.size() * 2));
  table_bits_ = std::countr_zero(slots);
  table_.assign(slots, {no_pair, 0, -1});
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    auto pair = pair_of(merges[rank].left, merges[rank].right);
    auto at = home_of(pair);
    while (table_[at].pair != no_pair && table_[at].pair != pair) at = (at + 1) & (slots - 1);
    table_[at] = {pair, static_cast<std::uint32_t>(rank), merges[rank].whole};
  }
}

std::size_t byte_pair_encoding::home_of(std::uint64_t pair) const {
  return static_cast<std::size_t>((pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> (64 - table_bits_));
}

byte_pair_encoding::merge const* byte_pair_encoding::find(std::int32_t left,
                                                          std::int32_t right) const {
  auto pair = pair_of(left, right);
  for (auto at = home_of(pair); table_[at].pair != no_pair; at = (at + 1) & (table_.size() - 1))
    if (table_[at].pair == pair) return &table_[at];
  return nullptr;
}

result<void> byte_pair_encoding::encode(std::string_view word,
                                        std::vector<std::int32_t>& ids) const {
  if (auto whole = words_.find(word); whole != words_.end()) {
    ids.push_back(whole->second);
    return {};
  }
  std::vector<symbol> symbols;
  symbols.reserve(word.size());
  for (char c : word) {
    auto byte = static_cast<unsigned char>(c);
    if (byte_ids_[byte] < 0)
      return fail(error_code::invalid_argument, "the vocabulary has no token for byte 0x{:02x}",
                  byte);
    auto at = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({byte_ids_[byte], at - 1, at + 1});
  }
  if (symbols.empty()) return {};
  symbols.back().next = -1;

  std::priority_queue<candidate> queue;
  auto consider = [&](std::int32_t at) {
    if (at < 0 || symbols[at].next < 0) return;
    auto left = symbols[at].id, right = symbols[symbols[at].next].id;
    if (auto* m = find(left, right)) queue.push({m->rank, at, left, right, m->whole});
  };
  for (std::size_t at = 0; at < symbols.size(); ++at) consider(static_cast<std::int32_t>(at));
  while (!queue.empty()) {
    auto best = queue.top();
    queue.pop();
    auto& left = symbols[best.at];
    if (left.id != best.left || left.next < 0 || symbols[left.next].id != best.right) continue;
    auto& right = symbols[left.next];
    left.id = best.whole;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) symbols[left.next].previous = best.at;
    consider(left.previous);
    consider(best.at);
  }
  for (std::int32_t at = 0; at >= 0; at = symbols[at].next) ids.push_back(symbols[at].id);
  return {};
}

}  // namespace ferry::deepseek
