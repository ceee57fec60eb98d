// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "balance/eplb.hpp"

#include "base/fail.hpp"

#include <algorithm>
#include <numeric>

namespace ferry::balance {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// Deals items out to packs of equally many, and returns them pack by pack in the order of dealing.
std::vector<int> dealt(std::vector<float> const& load, int num_packs) {
  int const items = static_cast<int>(load.size()), room = items / num_packs;
  std::vector<int> order(load.size());
  std::iota(order.begin(), order.end(), 0);
  if (room == 1) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return load[at(a)] > load[at(b)]; });
  std::vector<float> sum(at(num_packs), 0.0f);
  std::vector<int> count(at(num_packs), 0), packed(load.size());
  for (int item : order) {
    int best = -1;
    for (int p = 0; p < num_packs; ++p)
      if (count[at(p)] < room && (best < 0 || sum[at(p)] < sum[at(best)])) best = p;
    packed[at(best * room + count[at(best)]++)] = item;
    sum[at(best)] += load[at(item)];
  }
  return packed;
}

/// The expert of each physical copy: one each, then always one more of the expert whose copies
/// carry most.
std::vector<int> replicated(std::vector<float> const& load, int num_copies,
                            std::vector<int>& count) {
  std::vector<int> expert(load.size());
  std::iota(expert.begin(), expert.end(), 0);
  count.assign(load.size(), 1);
  while (static_cast<int>(expert.size()) < num_copies) {
    std::size_t most = 0;
    for (std::size_t e = 1; e < load.size(); ++e)
      if (load[e] / static_cast<float>(count[e]) > load[most] / static_cast<float>(count[most]))
        most = e;
    expert.push_back(static_cast<int>(most));
    ++count[most];
  }
  return expert;
}

}  // namespace

result<void> check_eplb(int num_experts, placement_options const& o) {
  int const slots = num_experts + o.redundant;
  bool const by_groups = o.num_groups % o.num_nodes == 0;
  if (slots % o.num_ranks != 0)
    return fail(error_code::invalid_argument, "eplb: {} slots do not divide over {} ranks", slots,
                o.num_ranks);
  if (by_groups && (o.num_ranks % o.num_nodes != 0 || num_experts % o.num_groups != 0))
    return fail(error_code::invalid_argument,
                "eplb: {} ranks must divide over {} nodes, and {} experts over {} groups",
                o.num_ranks, o.num_nodes, num_experts, o.num_groups);
  return {};
}

std::vector<std::int32_t> eplb_layer(std::span<double const> loads, placement_options const& o) {
  bool const by_groups = o.num_groups % o.num_nodes == 0;
  int const nodes = by_groups ? o.num_nodes : 1, groups = by_groups ? o.num_groups : 1;
  int const experts = static_cast<int>(loads.size()), of_group = experts / groups;
  int const slots = experts + o.redundant, node_slots = slots / nodes;

  std::vector<float> group_load(at(groups), 0.0f);
  for (int e = 0; e < experts; ++e)
    group_load[at(e / of_group)] += static_cast<float>(loads[at(e)]);
  auto const group_order = dealt(group_load, nodes);

  std::vector<std::int32_t> placed;
  for (int n = 0; n < nodes; ++n) {
    std::vector<int> expert;
    std::vector<float> load;
    for (int g = 0; g < groups / nodes; ++g)
      for (int i = 0; i < of_group; ++i) {
        expert.push_back(group_order[at(n * (groups / nodes) + g)] * of_group + i);
        load.push_back(static_cast<float>(loads[at(expert.back())]));
      }
    std::vector<int> count;
    auto const copies = replicated(load, node_slots, count);
    std::vector<float> share;
    for (int c : copies) share.push_back(load[at(c)] / static_cast<float>(count[at(c)]));
    for (int item : dealt(share, o.num_ranks / nodes))
      placed.push_back(expert[at(copies[at(item)])]);
  }
  return placed;
}

}  // namespace ferry::balance
