// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "balance/visits.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ferry::balance {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

visits::visits(std::vector<std::vector<int>> const& tokens, std::vector<int> const& rank_of,
               std::vector<int> place_of)
    : tokens_(&tokens),
      place_of_rank_(std::move(place_of)),
      num_places_(1 + *std::max_element(place_of_rank_.begin(), place_of_rank_.end())),
      tokens_with_(rank_of.size()),
      place_(rank_of.size()),
      count_(tokens.size() * at(num_places_)),
      alone_(rank_of.size()),
      absent_(rank_of.size() * at(num_places_)) {
  for (std::size_t i = 0; i < rank_of.size(); ++i) place_[i] = place_of_rank_[at(rank_of[i])];
  for (int t = 0; t < static_cast<int>(tokens.size()); ++t) {
    for (int item : tokens[at(t)]) {
      tokens_with_[at(item)].push_back(t);
      ++count_[cell(t, place_[at(item)])];
    }
    account(t, 1);
  }
}

/// Adds what the token contributes to the sums over tokens, or takes it away.
void visits::account(int token, int sign) {
  auto const& items = (*tokens_)[at(token)];
  for (int q = 0; q < num_places_; ++q) {
    if (count_[cell(token, q)] != 0) {
      total_ += sign;
      continue;
    }
    for (int item : items) absent_[cell(item, q)] += sign;
  }
  for (int item : items)
    if (count_[cell(token, place_[at(item)])] == 1) alone_[at(item)] += sign;
}

/// Calls visit(token, whether it has a) for each token with one of both.
template <class Visit>
void visits::for_tokens_with_one(int a, int b, Visit&& visit) const {
  auto const &of_a = tokens_with_[at(a)], &of_b = tokens_with_[at(b)];
  auto i = of_a.begin(), j = of_b.begin();
  auto const end_a = of_a.end(), end_b = of_b.end();
  while (i != end_a && j != end_b) {
    if (*i < *j) {
      visit(*i++, true);
    } else if (*j < *i) {
      visit(*j++, false);
    } else {
      ++i;
      ++j;
    }
  }
  for (; i != end_a; ++i) visit(*i, true);
  for (; j != end_b; ++j) visit(*j, false);
}

int visits::change_at_least(int a, int b) const {
  int const from = place_[at(a)], to = place_[at(b)];
  if (from == to) return 0;
  return absent_[cell(a, to)] - alone_[at(a)] + absent_[cell(b, from)] - alone_[at(b)];
}

int visits::change(int a, int b) const {
  int const from = place_[at(a)], to = place_[at(b)];
  if (from == to) return 0;
  int sum = 0;
  // A token with both goes on visiting both places.
  for_tokens_with_one(a, b, [&](int t, bool with_a) {
    int const leaves = with_a ? from : to, enters = with_a ? to : from;
    sum += (count_[cell(t, enters)] == 0) - (count_[cell(t, leaves)] == 1);
  });
  return sum;
}

void visits::swap(int a, int b) {
  // Also in a token with both: which of them is alone at its place may change.
  std::vector<int> either;
  std::set_union(tokens_with_[at(a)].begin(), tokens_with_[at(a)].end(),
                 tokens_with_[at(b)].begin(), tokens_with_[at(b)].end(),
                 std::back_inserter(either));
  for (int t : either) account(t, -1);
  swap_counts(a, b);
  for (int t : either) account(t, 1);
}

void visits::swap_counts(int a, int b) {
  int const from = place_[at(a)], to = place_[at(b)];
  if (from == to) return;
  for_tokens_with_one(a, b, [&](int t, bool with_a) {
    --count_[cell(t, with_a ? from : to)];
    ++count_[cell(t, with_a ? to : from)];
  });
  place_[at(a)] = to;
  place_[at(b)] = from;
}

void visits::recount() {
  total_ = 0;
  std::fill(alone_.begin(), alone_.end(), 0);
  std::fill(absent_.begin(), absent_.end(), 0);
  for (int t = 0; t < static_cast<int>(tokens_->size()); ++t) account(t, 1);
}

}  // namespace ferry::balance
