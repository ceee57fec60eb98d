// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The search for equal loads: see level in partition.hpp.
#include "balance/partition.hpp"
#include "balance/random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace ferry::balance {
namespace {

/// Sums of this many pairs are sorted at most; ranks with more members have pairs enough.
constexpr std::size_t most_pair_sums = 1 << 15;

struct exchange_of_two {
  double busier;  ///< the busier of both ranks afterwards
  int give, take;
};

/// A swap must lower the load by more than what rounding could make of it.
bool is_less(double a, double b) {
  return a < b * (1 - 1e-13);
}

/// The best swap between the busy rank and another.
void find_swap(partition const& p, int busy, int other, std::optional<exchange_of_two>& best) {
  double const high = p.load(busy), low = p.load(other);
  double const half = (high - low) / 2;
  auto const give = p.members(busy), take = p.members(other);
  // Both fall; for each given item the partner that is closest to it less half the gap.
  std::size_t at = 0;
  auto const consider = [&](int a, int b) {
    double const moved = p.item_load(a) - p.item_load(b);
    if (moved <= 0) return false;
    double const busier = std::max(high - moved, low + moved);
    if (best ? busier >= best->busier : !is_less(busier, high)) return false;
    if (!p.may_swap(a, b)) return false;
    best = {busier, a, b};
    return true;
  };
  bool const kinds = !p.problem().kind.empty();
  for (int a : give) {
    double const wanted = p.item_load(a) - half;
    while (at < take.size() && p.item_load(take[at]) >= wanted) ++at;
    // take[at - 1] is the last that is not lighter than wanted, take[at] the first that is. Where
    // kinds may forbid a partner, a few more on either side get their turn.
    std::size_t const reach = kinds ? 4 : 1;
    for (std::size_t i = at; i < std::min(at + reach, take.size()); ++i)
      if (consider(a, take[i])) break;
    for (std::size_t i = at; i > 0 && i + reach > at; --i)
      if (consider(a, take[i - 1])) break;
  }
}

bool swap_a_pair(partition& p) {
  int const busy = p.busiest();
  std::optional<exchange_of_two> best;
  for (int r = 0; r < p.num_ranks(); ++r)
    if (r != busy) find_swap(p, busy, r, best);
  if (!best || !is_less(best->busier, p.load(busy))) return false;
  p.swap(best->give, best->take);
  return true;
}

struct pair_sum {
  double load;
  int first, second;
};

/// A rank's members without those that could only do what two like them can.
std::vector<int> unlike_members(partition const& p, int rank) {
  std::vector<int> unlike;
  for (int item : p.members(rank)) {
    auto const n = unlike.size();
    bool const third = n >= 2 && p.item_load(unlike[n - 2]) == p.item_load(item);
    if (!third || !p.problem().kind.empty()) unlike.push_back(item);
  }
  return unlike;
}

/// By falling load.
std::vector<pair_sum> pair_sums(partition const& p, int rank) {
  auto const mine = unlike_members(p, rank);
  std::vector<pair_sum> sums;
  if (mine.size() * mine.size() / 2 > most_pair_sums) return sums;
  for (std::size_t i = 0; i < mine.size(); ++i)
    for (std::size_t j = i + 1; j < mine.size(); ++j)
      sums.push_back({p.item_load(mine[i]) + p.item_load(mine[j]), mine[i], mine[j]});
  std::sort(sums.begin(), sums.end(), [](pair_sum const& a, pair_sum const& b) {
    return std::tie(b.load, a.first, a.second) < std::tie(a.load, b.first, b.second);
  });
  return sums;
}

/// Whether two of a rank may change places with two of another.
bool may_swap_pairs(partition const& p, pair_sum const& a, pair_sum const& b) {
  if (p.problem().kind.empty()) return true;
  for (int x : {a.first, a.second})
    for (int y : {b.first, b.second})
      if (!p.may_swap(x, y)) return false;
  return true;
}

struct exchange_of_four {
  double busier;
  pair_sum give, take;
};

/// The best swap of two members of the busy rank with two of another.
void find_swap_of_pairs(partition const& p, std::span<pair_sum const> give, int busy, int other,
                        std::optional<exchange_of_four>& best) {
  auto const take = pair_sums(p, other);
  double const high = p.load(busy), low = p.load(other), half = (high - low) / 2;
  std::size_t at = 0;
  for (auto const& a : give) {
    while (at < take.size() && take[at].load >= a.load - half) ++at;
    for (std::size_t i = at > 0 ? at - 1 : 0; i < std::min(at + 1, take.size()); ++i) {
      double const moved = a.load - take[i].load;
      if (moved <= 0) continue;
      double const busier = std::max(high - moved, low + moved);
      if ((best ? busier < best->busier : is_less(busier, high)) && may_swap_pairs(p, a, take[i]))
        best = {busier, a, take[i]};
    }
  }
}

/// Starts with the least loaded rank, and is content with what is enough.
bool swap_two_pairs(partition& p, double enough) {
  int const busy = p.busiest();
  auto const give = pair_sums(p, busy);
  std::vector<int> others;
  for (int r = 0; r < p.num_ranks(); ++r)
    if (p.load(r) < p.load(busy)) others.push_back(r);
  std::stable_sort(others.begin(), others.end(),
                   [&](int a, int b) { return p.load(a) < p.load(b); });
  std::optional<exchange_of_four> best;
  for (int r : others) {
    find_swap_of_pairs(p, give, busy, r, best);
    if (best && best->busier <= enough) break;
  }
  if (!best) return false;
  p.swap(best->give.first, best->take.first);
  p.swap(best->give.second, best->take.second);
  return true;
}

void descend(partition& p, double enough) {
  do level_by_pairs(p);
  while (p.most() > enough && swap_two_pairs(p, enough));
}

void shake(partition& p, std::uint64_t& random) {
  auto const items = p.problem().num_items();
  int const busy = p.busiest();
  int const swaps = 2 + next_below(random, 4);
  for (int i = 0; i < swaps; ++i) {
    // The busiest rank takes part in every other swap.
    auto const mine = p.members(busy);
    int const a =
        i % 2 == 0
            ? mine[static_cast<std::size_t>(next_below(random, static_cast<int>(mine.size())))]
            : next_below(random, items);
    int const b = next_below(random, items);
    if (p.rank_of(a) != p.rank_of(b) && p.may_swap(a, b)) p.swap(a, b);
  }
}

}  // namespace

void level_by_pairs(partition& p) {
  while (swap_a_pair(p)) {
  }
}

void level(partition& p, double enough, int shakes) {
  if (p.problem().num_items() == 0) return;
  descend(p, enough);
  std::uint64_t random = 1;
  partition now = p;
  for (int i = 0; i < shakes && p.most() > enough; ++i) {
    partition next = now;
    shake(next, random);
    descend(next, enough);
    // A little worse is a way on; the best is kept apart.
    if (next.most() <= now.most() * 1.002) now = next;
    if (next.most() < p.most()) p = next;
    if (i % 16 == 15) now = p;
  }
}

}  // namespace ferry::balance
