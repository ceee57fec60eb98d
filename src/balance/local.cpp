// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The solver with two goals: few ranks per token, and no rank much busier than the mean.
#include "balance/layer_solvers.hpp"
#include "balance/random.hpp"
#include "balance/visits.hpp"

#include <ferry/balance/replicas.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace ferry::balance {
namespace {

/// Tokens of a longer trace that are looked at, evenly spaced.
constexpr std::int64_t most_tokens = 8192;
/// Tokens that a search for fewer visits looks at in each layer, for each choice of the sample, and
/// at most.
constexpr std::int64_t search_work = 300;
constexpr std::int64_t most_search_work = 10'000'000;
/// Ten times as many win a few hundredths of a rank, and are spent where less than half of what
/// balance costs has been won back; so many times.
constexpr int longer_search = 10;
constexpr int longer_searches = 2;
/// A row to another node costs more than one within; by this much, in rows.
constexpr int node_weight = 4;

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// The items that each token visits. Of an expert's replicas the hash chooses, as it does in
/// service.
std::vector<std::vector<int>> items_of_tokens(routing_trace const& trace, int layer,
                                              replica_problem const& problem, int num_ranks) {
  std::vector<int> first(at(problem.items.num_kinds) + 1);
  for (int e : problem.expert) ++first[at(e) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::int64_t const count = std::min(trace.num_tokens, most_tokens);
  std::vector<std::vector<int>> tokens(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t const t = i * trace.num_tokens / count;
    auto& items = tokens[static_cast<std::size_t>(i)];
    for (auto e : trace.choices(t, layer)) {
      if (e < 0) continue;
      auto const copies = static_cast<std::uint32_t>(first[at(e) + 1] - first[at(e)]);
      auto const which =
          replica_hash(static_cast<std::uint32_t>(t % num_ranks), static_cast<std::uint32_t>(t),
                       static_cast<std::uint32_t>(e)) %
          copies;
      items.push_back(first[at(e)] + static_cast<int>(which));
    }
    std::sort(items.begin(), items.end());
    items.erase(std::unique(items.begin(), items.end()), items.end());
  }
  return tokens;
}

/// A partition together with what its tokens visit.
class local_search {
 public:
  local_search(partition p, std::vector<std::vector<int>> const& tokens, int num_nodes,
               double limit)
      : p_(std::move(p)), limit_(limit) {
    int const ranks = p_.num_ranks();
    std::vector<int> own(at(ranks)), node(at(ranks));
    for (int r = 0; r < ranks; ++r) {
      own[at(r)] = r;
      node[at(r)] = owner_of(r, num_nodes, ranks);
    }
    ranks_.emplace(tokens, p_.rank_of(), std::move(own));
    if (num_nodes > 1) nodes_.emplace(tokens, p_.rank_of(), std::move(node));
  }

  /// Brings every rank below the limit, each time by the swap that costs the fewest visits for what
  /// it takes from the busiest rank. False where no swap helps.
  bool reach_limit() {
    while (p_.most() > limit_)
      if (!swap_from_busiest()) return false;
    return true;
  }

  /// Swaps that save visits and keep the limit, until none is left.
  void save_visits() {
    for (bool found = true; found;) {
      found = false;
      for (int a = 0; a < p_.problem().num_items(); ++a) found |= best_swap_of(a);
    }
  }

  /// Random swaps within the limit: one that costs visits is taken with a chance that falls as the
  /// search goes on. Ends after looking at `work` tokens.
  void anneal(std::int64_t work, double hot, double cold, std::uint64_t random = 7) {
    int const items = p_.problem().num_items();
    for (std::int64_t done = 0; done < work;) {
      double const share = static_cast<double>(done) / static_cast<double>(work);
      double const heat = hot * std::pow(cold / hot, share);
      int const a = next_below(random, items), b = next_below(random, items);
      done += 16;  // also a swap that is refused takes time
      if (!keeps_limit(a, b)) continue;
      done += ranks_->work(a, b);
      double const luck = static_cast<double>(next_random(random) >> 11) * 0x1p-53;
      if (change(a, b) >= -heat * std::log(luck + 1e-300)) continue;
      done += ranks_->work(a, b);
      ranks_->swap_counts(a, b);
      if (nodes_) nodes_->swap_counts(a, b);
      p_.swap(a, b);
    }
    ranks_->recount();
    if (nodes_) nodes_->recount();
  }

  double cost() const {
    return static_cast<double>(ranks_->total()) +
           (nodes_ ? node_weight * static_cast<double>(nodes_->total()) : 0.0);
  }
  partition const& where() const { return p_; }

 private:
  int change_at_least(int a, int b) const {
    return ranks_->change_at_least(a, b) +
           (nodes_ ? node_weight * nodes_->change_at_least(a, b) : 0);
  }
  int change(int a, int b) const {
    return ranks_->change(a, b) + (nodes_ ? node_weight * nodes_->change(a, b) : 0);
  }
  void swap(int a, int b) {
    ranks_->swap(a, b);
    if (nodes_) nodes_->swap(a, b);
    p_.swap(a, b);
  }
  bool keeps_limit(int a, int b) const {
    int const from = p_.rank_of(a), to = p_.rank_of(b);
    if (from == to || !p_.may_swap(a, b)) return false;
    double const moved = p_.item_load(a) - p_.item_load(b);
    return p_.load(from) - moved <= limit_ && p_.load(to) + moved <= limit_;
  }

  bool swap_from_busiest() {
    int const busy = p_.busiest();
    double const high = p_.load(busy);
    double best_price = std::numeric_limits<double>::infinity();
    int give = -1, take = -1;
    for (int a : p_.members(busy))
      for (int b = 0; b < p_.problem().num_items(); ++b) {
        if (p_.rank_of(b) == busy || !p_.may_swap(a, b)) continue;
        double const moved = p_.item_load(a) - p_.item_load(b);
        double const other = p_.load(p_.rank_of(b)) + moved;
        if (moved <= high * 1e-12 || other >= high * (1 - 1e-12)) continue;
        // What lifts the other rank over the limit has to be moved on from there.
        double const gain = std::min(moved, high - limit_) - std::max(0.0, other - limit_);
        if (gain <= 0) continue;
        double const price = (change_at_least(a, b) + 1.0) / gain;
        if (price < best_price) {
          best_price = price;
          give = a;
          take = b;
        }
      }
    if (give < 0) return false;
    swap(give, take);
    return true;
  }

  bool best_swap_of(int a) {
    int best = -1, most = 0;
    for (int b = 0; b < p_.problem().num_items(); ++b) {
      if (!keeps_limit(a, b) || change_at_least(a, b) >= most) continue;
      int const saved = change(a, b);
      if (saved < most) {
        most = saved;
        best = b;
      }
    }
    if (best < 0) return false;
    swap(a, best);
    return true;
  }

  partition p_;
  double limit_;
  std::optional<visits> ranks_;
  std::optional<visits> nodes_;
};

}  // namespace

slot_list local_layer(std::span<double const> loads, routing_trace const& trace, int layer,
                      slot_list const* present, placement_options const& o) {
  int const experts = static_cast<int>(loads.size());
  auto const level = replicate_layer(loads, o);
  std::vector<int> copies(loads.size());
  for (auto e : level) ++copies[at(e)];
  auto const problem = problem_of(loads, copies, places_of(experts + o.redundant, o.num_ranks));
  auto const tokens = items_of_tokens(trace, layer, problem, o.num_ranks);
  double const mean = std::accumulate(loads.begin(), loads.end(), 0.0) / o.num_ranks;
  partition const level_part(problem.items, ranks_of(level, problem));
  double const limit = std::max(mean * o.most_over_mean, level_part.most());

  std::vector<std::vector<int>> starts = {level_part.rank_of()};
  auto const add = [&](slot_list const& slots) {
    std::vector<int> theirs(loads.size());
    for (auto e : slots) ++theirs[at(e)];
    if (theirs == copies) starts.push_back(ranks_of(slots, problem));
  };
  slot_list contiguous(loads.size());
  std::iota(contiguous.begin(), contiguous.end(), 0);
  add(contiguous);
  if (present) add(*present);

  std::optional<local_search> best;
  // Of the permuted placement, which is the first, and of the placement that visits least.
  double level_cost = 0, least_cost = std::numeric_limits<double>::infinity();
  for (auto const& start : starts) {
    local_search s(partition(problem.items, start), tokens, o.num_nodes, limit);
    if (&start == &starts.front()) level_cost = s.cost();
    least_cost = std::min(least_cost, s.cost());
    if (!s.reach_limit()) continue;
    s.save_visits();
    if (!best || s.cost() < best->cost()) best.emplace(std::move(s));
  }
  // Chances are measured in visits, of which a longer sample has more.
  double const hot = 0.005 * static_cast<double>(tokens.size());
  auto const choices = static_cast<std::int64_t>(tokens.size()) * trace.topk;
  auto const work = std::min(most_search_work, search_work * choices);
  best->anneal(work, hot, 0.1 * hot);
  best->save_visits();
  double const half = (least_cost + level_cost) / 2;
  for (int i = 0; i < longer_searches && best->cost() > half; ++i) {
    local_search again = *best;
    again.anneal(longer_search * work, hot, 0.1 * hot, static_cast<std::uint64_t>(8 + i));
    again.save_visits();
    if (again.cost() < best->cost()) best = std::move(again);
  }
  return slots_of(best->where(), problem.expert);
}

}  // namespace ferry::balance
