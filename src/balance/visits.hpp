// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How many ranks and nodes the tokens of a sample visit, kept up to date while items change
/// places.
#pragma once

#include "balance/partition.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry::balance {

/// Distinct places per token at one level: ranks, or the nodes that they belong to.
class visits {
 public:
  /// Shapes   tokens: for each token its items, each at most once; rank_of [items]; place_of
  /// [ranks]
  visits(std::vector<std::vector<int>> const& tokens, std::vector<int> const& rank_of,
         std::vector<int> place_of);

  /// (token, place) pairs that are visited.
  std::int64_t total() const { return total_; }
  /// At most what `total` changes by when the two items change places; and exactly.
  int change_at_least(int a, int b) const;
  int change(int a, int b) const;
  /// Changes their places. `change_at_least` stays right.
  void swap(int a, int b);
  /// As `swap`, but at once; `total` and `change_at_least` are wrong until `recount`.
  void swap_counts(int a, int b);
  void recount();
  /// Tokens that `change` looks at.
  int work(int a, int b) const {
    return static_cast<int>(tokens_with_[static_cast<std::size_t>(a)].size() +
                            tokens_with_[static_cast<std::size_t>(b)].size());
  }

 private:
  std::size_t cell(int row, int place) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(num_places_) +
           static_cast<std::size_t>(place);
  }
  void account(int token, int sign);
  template <class Visit>
  void for_tokens_with_one(int a, int b, Visit&& visit) const;

  std::vector<std::vector<int>> const* tokens_;
  std::vector<int> place_of_rank_;
  int num_places_;
  std::vector<std::vector<int>> tokens_with_;  // [items], ascending
  std::vector<int> place_;                     // [items]
  std::vector<std::uint16_t> count_;           // [tokens, places]: items of the token there
  std::vector<int> alone_;                     // [items]: tokens that visit its place for it alone
  std::vector<int> absent_;  // [items, places]: tokens with the item that do not visit the place
  std::int64_t total_ = 0;
};

}  // namespace ferry::balance
