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

}  // namespace

slot_list replicate_layer(std::span<double const> loads, placement_options const& o) {
  if (o.redundant == 0) return permute_layer(loads, o);
  int const experts = static_cast<int>(loads.size());
  auto const places = places_of(experts + o.redundant, o.num_ranks);
  bool const has_theirs = o.everywhere == 0 && check_eplb(experts, o).has_value();
  if (!has_theirs)
    return balanced(loads, places, {.num_nodes = o.num_nodes, .everywhere = o.everywhere});
  // Level ranks come first: what is spread over nodes must not be busier than what EPLB gives.
  auto theirs = eplb_layer(loads, o);
  double const most = busiest_rank(theirs, loads, o.num_ranks);
  auto best = balanced(loads, places, {.num_nodes = o.num_nodes, .at_most = most});
  if (busiest_rank(best, loads, o.num_ranks) <= most) return best;
  if (o.num_nodes > 1) best = balanced(loads, places, {.at_most = most});
  if (busiest_rank(best, loads, o.num_ranks) <= most) return best;
  return is_apart(theirs, experts, o.num_ranks) ? theirs : best;
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
    for (auto e : balanced(load, node_places, {})) slots.push_back(expert[at(e)]);
  }
  return slots;
}

}  // namespace ferry::balance
