// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Solvers that know of nodes.
#include "balance/eplb.hpp"
#include "balance/layer_solvers.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ferry::balance {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// Whether no rank holds an expert twice.
bool is_apart(slot_list const& slots, int num_experts, int num_ranks) {
  std::vector<int> seen_on(at(num_experts), -1);
  for (std::size_t s = 0; s < slots.size(); ++s) {
    int const rank = owner_of(static_cast<int>(s), num_ranks, static_cast<int>(slots.size()));
    if (std::exchange(seen_on[at(slots[s])], rank) == rank) return false;
  }
  return true;
}

std::vector<int> copies_in(slot_list const& slots, int num_experts) {
  std::vector<int> copies(at(num_experts));
  for (auto e : slots) ++copies[at(e)];
  return copies;
}

/// How often each (node, expert) lies there.
class node_table {
 public:
  node_table(partition const& p, int num_nodes)
      : p_(p), nodes_(num_nodes), count_(at(num_nodes) * at(p.problem().num_kinds)) {
    for (int i = 0; i < p.problem().num_items(); ++i) ++cell(node_of(i), kind(i));
  }
  int node_of(int item) const { return owner_of(p_.rank_of(item), nodes_, p_.num_ranks()); }
  int kind(int item) const { return p_.problem().kind[at(item)]; }
  int& cell(int node, int kind) { return count_[at(node) * at(p_.problem().num_kinds) + at(kind)]; }
  /// Nodes that the two items' kinds gain when the items change places.
  int gain(int a, int b) {
    int const from = node_of(a), to = node_of(b);
    if (from == to) return 0;
    return (cell(to, kind(a)) == 0) - (cell(from, kind(a)) == 1) + (cell(from, kind(b)) == 0) -
           (cell(to, kind(b)) == 1);
  }
  /// Before the items change places.
  void swap(int a, int b) {
    int const from = node_of(a), to = node_of(b);
    --cell(from, kind(a)), ++cell(to, kind(a));
    --cell(to, kind(b)), ++cell(from, kind(b));
  }

 private:
  partition const& p_;
  int nodes_;
  std::vector<int> count_;
};

}  // namespace

void spread_over_nodes(partition& p, int num_nodes, double limit) {
  if (num_nodes == 1 || p.problem().kind.empty()) return;
  node_table nodes(p, num_nodes);
  int const items = p.problem().num_items();
  for (int a = 0; a < items; ++a) {
    if (nodes.cell(nodes.node_of(a), nodes.kind(a)) < 2) continue;
    int best = -1;
    double least = 0;
    for (int b = 0; b < items; ++b) {
      if (nodes.gain(a, b) <= 0 || !p.may_swap(a, b)) continue;
      double const moved = p.item_load(a) - p.item_load(b);
      double const busier = std::max(p.load(p.rank_of(a)) - moved, p.load(p.rank_of(b)) + moved);
      if (busier <= limit && (best < 0 || busier < least)) {
        best = b;
        least = busier;
      }
    }
    if (best < 0) continue;
    nodes.swap(a, best);
    p.swap(a, best);
  }
}

slot_list replicate_layer(std::span<double const> loads, placement_options const& o) {
  if (o.redundant == 0) return permute_layer(loads, o);
  int const experts = static_cast<int>(loads.size());
  auto const places = places_of(experts + o.redundant, o.num_ranks);
  auto best = balanced(loads, places, o.everywhere);
  if (o.everywhere == 0 && check_eplb(experts, o)) {
    auto theirs = eplb_layer(loads, o);
    double const most = busiest_rank(best, loads, o.num_ranks);
    if (is_apart(theirs, experts, o.num_ranks) && busiest_rank(theirs, loads, o.num_ranks) < most)
      best = std::move(theirs);
  }
  if (o.num_nodes == 1) return best;
  auto const problem = problem_of(loads, copies_in(best, experts), places);
  partition p(problem.items, ranks_of(best, problem));
  spread_over_nodes(p, o.num_nodes, std::max(p.most(), lower_bound(problem.items) * close_enough));
  return slots_of(p, problem.expert);
}

slot_list hierarchical_layer(std::span<double const> loads, placement_options const& o) {
  int const experts = static_cast<int>(loads.size()), of_group = experts / o.num_groups;
  partition_problem groups;
  groups.places = places_of(o.num_groups, o.num_nodes);
  for (int g = 0; g < o.num_groups; ++g) {
    auto const mine = loads.subspan(at(g * of_group), at(of_group));
    groups.load.push_back(std::accumulate(mine.begin(), mine.end(), 0.0));
  }
  partition nodes(groups, heaviest_first(groups));
  level(nodes, lower_bound(groups) * close_enough, 64);

  auto const places = places_of(experts + o.redundant, o.num_ranks);
  slot_list slots;
  for (int n = 0, rank = 0; n < o.num_nodes; ++n) {
    std::vector<int> node_places;
    for (; rank < o.num_ranks && owner_of(rank, o.num_nodes, o.num_ranks) == n; ++rank)
      node_places.push_back(places[at(rank)]);
    std::vector<int> members(nodes.members(n).begin(), nodes.members(n).end());
    std::sort(members.begin(), members.end());
    std::vector<int> expert;
    std::vector<double> load;
    for (int g : members)
      for (int i = 0; i < of_group; ++i) {
        expert.push_back(g * of_group + i);
        load.push_back(loads[at(expert.back())]);
      }
    for (auto e : balanced(load, node_places, 0)) slots.push_back(expert[at(e)]);
  }
  return slots;
}

}  // namespace ferry::balance
