// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "balance/partition.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace ferry::balance {
namespace {

std::vector<int> by_falling_load(std::vector<double> const& load) {
  std::vector<int> order(load.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return load[static_cast<std::size_t>(a)] > load[static_cast<std::size_t>(b)];
  });
  return order;
}

/// Whole numbers only add up to multiples of their common divisor: the first one at or above
/// `bound`.
double next_possible(double bound, std::vector<double> const& load) {
  constexpr double exact = 0x1p52;
  std::uint64_t divisor = 0;
  for (double v : load) {
    if (v != std::floor(v) || v > exact) return bound;
    divisor = std::gcd(divisor, static_cast<std::uint64_t>(v));
  }
  if (divisor == 0) return bound;
  auto const d = static_cast<double>(divisor);
  // The mean of whole numbers may be off by its last bit.
  return std::ceil(bound / d * (1 - 1e-14)) * d;
}

}  // namespace

double lower_bound(partition_problem const& problem) {
  auto sorted = problem.load;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  auto const n = sorted.size();
  std::vector<double> sum(n + 1);  // of the heaviest
  for (std::size_t i = 0; i < n; ++i) sum[i + 1] = sum[i] + sorted[i];
  auto places = problem.places;
  std::erase(places, 0);
  if (places.empty()) return 0;
  std::sort(places.begin(), places.end());
  std::vector<std::size_t> fewest(1), most(1);  // places of any j ranks
  for (std::size_t j = 0; j < places.size(); ++j) {
    fewest.push_back(fewest.back() + static_cast<std::size_t>(places[j]));
    most.push_back(most.back() + static_cast<std::size_t>(places[places.size() - 1 - j]));
  }
  double bound = sum[n] / static_cast<double>(places.size());
  for (std::size_t k = 1; k < places.size() && k <= n; ++k) {
    // The k heaviest lie on some j ranks, and these are full.
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t j = 1; j <= k; ++j) {
      if (most[j] < k) continue;
      auto const others = fewest[j] > k ? fewest[j] - k : 0;
      double const lightest = sum[n] - sum[n - others];
      least = std::min(least, (sum[k] + lightest) / static_cast<double>(j));
    }
    bound = std::max(bound, least);
  }
  return next_possible(bound, problem.load);
}

partition::partition(partition_problem const& problem, std::vector<int> rank_of)
    : problem_(&problem),
      rank_of_(std::move(rank_of)),
      load_(problem.places.size()),
      members_(problem.places.size()) {
  for (std::size_t r = 0; r < members_.size(); ++r)
    members_[r].reserve(static_cast<std::size_t>(problem.places[r]));
  for (int item : by_falling_load(problem.load))
    members_[static_cast<std::size_t>(rank_of_[static_cast<std::size_t>(item)])].push_back(item);
  for (int r = 0; r < num_ranks(); ++r) add_up(r);
  if (problem.kind.empty()) return;
  held_.resize(members_.size() * static_cast<std::size_t>(problem.num_kinds));
  for (std::size_t i = 0; i < rank_of_.size(); ++i)
    held_[static_cast<std::size_t>(rank_of_[i]) * static_cast<std::size_t>(problem.num_kinds) +
          static_cast<std::size_t>(problem.kind[i])] = 1;
  if (problem.node.empty()) return;
  on_node_.resize(static_cast<std::size_t>(problem.num_nodes) *
                  static_cast<std::size_t>(problem.num_kinds));
  for (int i = 0; i < problem.num_items(); ++i) ++on_node_[cell_of_node(this->rank_of(i), i)];
}

bool partition::keeps_nodes(int a, int b) const {
  if (on_node_.empty()) return true;
  int const from = rank_of(a), to = rank_of(b);
  if (problem_->node[static_cast<std::size_t>(from)] ==
      problem_->node[static_cast<std::size_t>(to)])
    return true;
  int const gain = (on_node_[cell_of_node(to, a)] == 0) - (on_node_[cell_of_node(from, a)] == 1) +
                   (on_node_[cell_of_node(from, b)] == 0) - (on_node_[cell_of_node(to, b)] == 1);
  return gain >= 0;
}

void partition::add_up(int rank) {
  // From the lightest up: the same members make the same sum, however they came.
  double sum = 0;
  auto const& mine = members_[static_cast<std::size_t>(rank)];
  for (auto at = mine.rbegin(); at != mine.rend(); ++at) sum += item_load(*at);
  load_[static_cast<std::size_t>(rank)] = sum;
}

int partition::busiest() const {
  return static_cast<int>(std::max_element(load_.begin(), load_.end()) - load_.begin());
}

bool partition::may_swap(int a, int b) const {
  if (problem_->kind.empty()) return true;
  int const of_a = problem_->kind[static_cast<std::size_t>(a)];
  int const of_b = problem_->kind[static_cast<std::size_t>(b)];
  if (of_a == of_b) return false;  // nothing would change
  return !holds(rank_of(a), of_b) && !holds(rank_of(b), of_a) && keeps_nodes(a, b);
}

void partition::move(int item, int to) {
  auto& from = members_[static_cast<std::size_t>(rank_of(item))];
  from.erase(std::find(from.begin(), from.end(), item));
  auto& mine = members_[static_cast<std::size_t>(to)];
  auto const at = std::upper_bound(mine.begin(), mine.end(), item, [&](int a, int b) {
    return item_load(a) != item_load(b) ? item_load(a) > item_load(b) : a < b;
  });
  mine.insert(at, item);
  if (!held_.empty()) {
    auto const kinds = static_cast<std::size_t>(problem_->num_kinds);
    auto const kind = static_cast<std::size_t>(problem_->kind[static_cast<std::size_t>(item)]);
    held_[static_cast<std::size_t>(rank_of(item)) * kinds + kind] = 0;
    held_[static_cast<std::size_t>(to) * kinds + kind] = 1;
  }
  if (!on_node_.empty()) {
    --on_node_[cell_of_node(rank_of(item), item)];
    ++on_node_[cell_of_node(to, item)];
  }
  rank_of_[static_cast<std::size_t>(item)] = to;
}

void partition::swap(int a, int b) {
  int const from = rank_of(a), to = rank_of(b);
  move(a, to);
  move(b, from);
  add_up(from);
  add_up(to);
}

namespace {

/// Gives the last items places where those that are left hold their kind already.
class dealer {
 public:
  explicit dealer(partition_problem const& problem)
      : problem_(problem),
        rank_of_(problem.load.size(), -1),
        load_(problem.places.size()),
        free_(problem.places) {
    if (problem.kind.empty()) return;
    held_.resize(problem.places.size() * at(problem.num_kinds));
    if (!problem.node.empty()) on_node_.resize(at(problem.num_nodes) * at(problem.num_kinds));
  }

  void deal(int item) {
    int best = -1;
    for (int r = 0; r < problem_.num_ranks(); ++r)
      if (free_[at(r)] > 0 && !holds(r, item) &&
          (best < 0 || std::pair(on_node(r, item), load_[at(r)]) <
                           std::pair(on_node(best, item), load_[at(best)])))
        best = r;
    if (best < 0) best = make_room(item);
    put(item, best);
  }
  std::vector<int> take() { return std::move(rank_of_); }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  std::size_t cell(int rank, int item) const {
    return at(rank) * at(problem_.num_kinds) + at(problem_.kind[at(item)]);
  }
  bool holds(int rank, int item) const { return !held_.empty() && held_[cell(rank, item)]; }
  /// Items of the item's kind on the rank's node; 0 where nodes do not matter.
  int on_node(int rank, int item) const {
    if (on_node_.empty()) return 0;
    return on_node_[at(problem_.node[at(rank)]) * at(problem_.num_kinds) +
                    at(problem_.kind[at(item)])];
  }
  void count_on_node(int rank, int item, int change) {
    if (!on_node_.empty())
      on_node_[at(problem_.node[at(rank)]) * at(problem_.num_kinds) +
               at(problem_.kind[at(item)])] += change;
  }
  void put(int item, int rank) {
    rank_of_[at(item)] = rank;
    load_[at(rank)] += problem_.load[at(item)];
    --free_[at(rank)];
    if (!held_.empty()) held_[cell(rank, item)] = 1;
    count_on_node(rank, item, 1);
  }
  /// Every rank with a free place holds the item's kind. Some full rank does not, and one of its
  /// items can go to a free place, because a full rank holds a kind that one with a free place
  /// lacks. Takes the lightest such item.
  int make_room(int item) {
    int from = -1, to = -1, moved = -1;
    for (int i = 0; i < problem_.num_items(); ++i) {
      int const rank = rank_of_[at(i)];
      if (rank < 0 || holds(rank, item)) continue;
      if (moved >= 0 && problem_.load[at(i)] >= problem_.load[at(moved)]) continue;
      for (int r = 0; r < problem_.num_ranks(); ++r)
        if (free_[at(r)] > 0 && !holds(r, i)) {
          moved = i;
          from = rank;
          to = r;
          break;
        }
    }
    held_[cell(from, moved)] = 0;
    count_on_node(from, moved, -1);
    load_[at(from)] -= problem_.load[at(moved)];
    ++free_[at(from)];
    put(moved, to);
    return from;
  }

  partition_problem const& problem_;
  std::vector<int> rank_of_;
  std::vector<double> load_;
  std::vector<int> free_;
  std::vector<char> held_;
  std::vector<int> on_node_;
};

}  // namespace

std::vector<int> heaviest_first(partition_problem const& problem) {
  dealer d(problem);
  for (int item : by_falling_load(problem.load)) d.deal(item);
  return d.take();
}

}  // namespace ferry::balance
