// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/replicas.hpp>

#include "base/fail.hpp"

#include <algorithm>
#include <tuple>

namespace ferry {
namespace {

/// Loads of the ranks in one layer, each replica with an even share.
std::vector<double> loads_of_ranks(placement const& where, int layer,
                                   std::span<double const> loads) {
  std::vector<double> of_ranks(static_cast<std::size_t>(where.num_ranks));
  if (loads.empty()) return of_ranks;
  auto const slots = where.layer(layer);
  std::vector<int> copies(loads.size());
  for (auto e : slots)
    if (e >= 0) ++copies[static_cast<std::size_t>(e)];
  for (int s = 0; s < where.num_slots; ++s) {
    if (slots[static_cast<std::size_t>(s)] < 0) continue;
    auto const e = static_cast<std::size_t>(slots[static_cast<std::size_t>(s)]);
    of_ranks[static_cast<std::size_t>(where.rank_of(s))] += loads[e] / copies[e];
  }
  return of_ranks;
}

/// 0 on the own rank, 1 on the own node, 2 elsewhere.
int distance(placement const& where, int from, int to) {
  if (from == to) return 0;
  return where.node_of(from) == where.node_of(to) ? 1 : 2;
}

std::int32_t nearest(placement const& where, int source, std::span<std::int32_t const> slots,
                     std::span<double const> of_ranks) {
  if (slots.front() < 0) return -1;
  auto const key = [&](std::int32_t slot) {
    int const rank = where.rank_of(slot);
    return std::tuple(distance(where, source, rank), of_ranks[static_cast<std::size_t>(rank)],
                      slot);
  };
  return *std::min_element(slots.begin(), slots.end(),
                           [&](auto a, auto b) { return key(a) < key(b); });
}

}  // namespace

result<replica_table> replicas_for(placement const& where, int layer, int source,
                                   replica_choice rule, std::span<double const> loads) {
  if (layer < 0 || layer >= where.num_layers || source < 0 || source >= where.num_ranks)
    return fail(error_code::invalid_argument,
                "layer {} and rank {} of a placement of {} layers and {} ranks", layer, source,
                where.num_layers, where.num_ranks);
  auto const experts = static_cast<std::size_t>(where.num_experts);
  if (!loads.empty() && loads.size() != experts)
    return fail(error_code::invalid_argument, "{} loads of {} experts", loads.size(), experts);

  // Slots by expert, ascending.
  auto const slots = where.layer(layer);
  replica_table all;
  all.source = source;
  all.first.assign(experts + 1, 0);
  for (auto e : slots)
    if (e >= 0) ++all.first[static_cast<std::size_t>(e) + 1];
  // An expert that is nowhere has one candidate all the same, which is none.
  for (std::size_t e = 0; e < experts; ++e)
    all.first[e + 1] = all.first[e] + std::max(all.first[e + 1], 1);
  all.candidates.assign(static_cast<std::size_t>(all.first[experts]), -1);
  auto next = all.first;
  for (std::size_t s = 0; s < slots.size(); ++s)
    if (slots[s] >= 0)
      all.candidates[static_cast<std::size_t>(next[static_cast<std::size_t>(slots[s])]++)] =
          static_cast<std::int32_t>(s);
  if (rule == replica_choice::hash) return all;

  auto const of_ranks = loads_of_ranks(where, layer, loads);
  replica_table one;
  one.source = source;
  for (std::size_t e = 0; e < experts; ++e) {
    auto const begin = static_cast<std::size_t>(all.first[e]);
    std::span<std::int32_t const> mine(all.candidates.data() + begin,
                                       static_cast<std::size_t>(all.first[e + 1]) - begin);
    one.first.push_back(static_cast<std::int32_t>(e));
    one.candidates.push_back(rule == replica_choice::round_robin
                                 ? mine[static_cast<std::size_t>(source) % mine.size()]
                                 : nearest(where, source, mine, of_ranks));
  }
  one.first.push_back(static_cast<std::int32_t>(experts));
  return one;
}

}  // namespace ferry
