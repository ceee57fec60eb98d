// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/metrics.hpp>

#include "balance/random.hpp"
#include "base/fail.hpp"

#include <ferry/kernels/window_fields.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace ferry {
namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// The sizes alone: EPLB's answers, which may hold an expert twice on a rank, are measured as well.
result<void> check_where(placement const& where, int num_layers, int num_experts) {
  if (where.num_layers != num_layers || where.num_experts != num_experts)
    return fail(error_code::invalid_argument,
                "a placement of {} layers and {} experts for {} and {}", where.num_layers,
                where.num_experts, num_layers, num_experts);
  if (where.num_ranks < 1 || where.num_nodes < 1 || where.num_nodes > where.num_ranks ||
      where.num_slots < num_experts || where.experts.size() != at(num_layers) * at(where.num_slots))
    return fail(error_code::invalid_argument,
                "a placement with {} entries in {} slots on {} ranks and {} nodes",
                where.experts.size(), where.num_slots, where.num_ranks, where.num_nodes);
  for (int l = 0; l < num_layers; ++l) {
    std::vector<char> seen(at(num_experts));
    for (auto e : where.layer(l)) {
      if (e < 0 || e >= num_experts)
        return fail(error_code::invalid_argument, "layer {}: a slot holds expert {}, not 0..{}", l,
                    e, num_experts - 1);
      seen[at(e)] = 1;
    }
    if (auto missing = std::find(seen.begin(), seen.end(), 0); missing != seen.end())
      return fail(error_code::invalid_argument, "layer {}: no slot holds expert {}", l,
                  missing - seen.begin());
  }
  return {};
}

result<std::vector<replica_table>> tables_of(placement const& where, routing_trace const& trace,
                                             int layer, replica_choice rule) {
  std::vector<double> loads(at(where.num_experts));
  if (rule == replica_choice::nearest)
    for (std::int64_t t = 0; t < trace.num_tokens; ++t)
      for (auto e : trace.choices(t, layer))
        if (e >= 0) loads[at(e)] += 1;
  std::vector<replica_table> tables;
  for (int source = 0; source < where.num_ranks; ++source) {
    FERRY_TRY(auto table, replicas_for(where, layer, source, rule, loads));
    tables.push_back(std::move(table));
  }
  return tables;
}

result<void> check_trace(placement const& where, routing_trace const& trace) {
  FERRY_CHECK(validate(trace, where.num_experts));
  return check_where(where, trace.num_layers, where.num_experts);
}

}  // namespace

result<rank_balance> balance_of(placement const& where, expert_loads const& loads) {
  FERRY_CHECK(validate(loads));
  FERRY_CHECK(check_where(where, loads.num_layers, loads.num_experts));
  rank_balance b;
  b.rank_loads.resize(at(where.num_layers) * at(where.num_ranks));
  double maxima = 0, means = 0;
  for (int l = 0; l < where.num_layers; ++l) {
    std::vector<int> copies(at(where.num_experts));
    for (auto e : where.layer(l)) ++copies[at(e)];
    std::span<double> mine(b.rank_loads.data() + at(l) * at(where.num_ranks), at(where.num_ranks));
    for (int s = 0; s < where.num_slots; ++s) {
      auto const e = at(where.layer(l)[at(s)]);
      mine[at(where.rank_of(s))] += loads.layer(l)[e] / copies[e];
    }
    double const most = *std::max_element(mine.begin(), mine.end());
    double const mean =
        std::accumulate(loads.layer(l).begin(), loads.layer(l).end(), 0.0) / where.num_ranks;
    b.max_over_mean.push_back(mean > 0 ? most / mean : 1.0);
    maxima += most;
    means += mean;
  }
  b.mean = std::accumulate(b.max_over_mean.begin(), b.max_over_mean.end(), 0.0) / where.num_layers;
  b.worst = *std::max_element(b.max_over_mean.begin(), b.max_over_mean.end());
  b.time_weighted = maxima / means;
  return b;
}

result<token_distance> distance_of(placement const& where, routing_trace const& trace,
                                   replica_choice rule) {
  FERRY_CHECK(check_trace(where, trace));
  std::vector<std::int64_t> rank_seen(at(where.num_ranks), -1), node_seen(at(where.num_nodes), -1);
  std::int64_t ranks = 0, nodes = 0, visit = 0;
  for (int l = 0; l < where.num_layers; ++l) {
    FERRY_TRY(auto tables, tables_of(where, trace, l, rule));
    for (std::int64_t t = 0; t < trace.num_tokens; ++t, ++visit)
      for (auto e : trace.choices(t, l)) {
        if (e < 0) continue;
        int const r =
            where.rank_of(tables[at(t % where.num_ranks)].slot(e, static_cast<std::uint32_t>(t)));
        ranks += std::exchange(rank_seen[at(r)], visit) != visit;
        nodes += std::exchange(node_seen[at(where.node_of(r))], visit) != visit;
      }
  }
  return token_distance{static_cast<double>(ranks) / static_cast<double>(visit),
                        static_cast<double>(nodes) / static_cast<double>(visit)};
}

result<std::optional<double>> step_imbalance(placement const& where, routing_trace const& trace,
                                             std::int64_t tokens_per_step, replica_choice rule) {
  FERRY_CHECK(check_trace(where, trace));
  if (tokens_per_step < 1)
    return fail(error_code::invalid_argument, "steps of {} tokens; at least 1", tokens_per_step);
  std::int64_t const steps = trace.num_tokens / tokens_per_step;
  double sum = 0;
  std::int64_t counted = 0;
  for (int l = 0; l < where.num_layers; ++l) {
    FERRY_TRY(auto tables, tables_of(where, trace, l, rule));
    for (std::int64_t step = 0; step < steps; ++step) {
      std::vector<std::int64_t> rows(at(where.num_ranks));
      for (std::int64_t t = step * tokens_per_step; t < (step + 1) * tokens_per_step; ++t)
        for (auto e : trace.choices(t, l))
          if (e >= 0)
            ++rows[at(where.rank_of(
                tables[at(t % where.num_ranks)].slot(e, static_cast<std::uint32_t>(t))))];
      auto const all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
      if (all == 0) continue;
      sum += static_cast<double>(*std::max_element(rows.begin(), rows.end()) * where.num_ranks) /
             static_cast<double>(all);
      ++counted;
    }
  }
  if (counted == 0) return std::optional<double>();
  return std::optional<double>(sum / static_cast<double>(counted));
}

result<double> sampling_floor(std::int64_t tokens_per_step, int topk, int num_experts,
                              int num_ranks) {
  if (tokens_per_step < 1 || topk < 1 || num_experts < 1 || num_ranks < 1 || topk > num_experts)
    return fail(
        error_code::invalid_argument,
        "steps of {} tokens with {} of {} experts on {} ranks; at least 1 of each, and no more "
        "choices than experts",
        tokens_per_step, topk, num_experts, num_ranks);
  // More rounds where chance plays more. A step beyond a million tokens is as one of a million: its
  // floor is less than a thousandth above 1 anyway.
  std::int64_t const tokens = std::min<std::int64_t>(tokens_per_step, 1 << 20);
  std::int64_t const rounds = std::clamp<std::int64_t>((1 << 22) / (tokens * topk), 4, 2000);
  std::uint64_t random = 11;
  std::vector<int> deck(at(num_experts));
  std::iota(deck.begin(), deck.end(), 0);
  double sum = 0;
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::vector<std::int64_t> rows(at(num_ranks));
    for (std::int64_t t = 0; t < tokens; ++t)
      for (int k = 0; k < topk; ++k) {
        // The front of a deck that goes on being shuffled: distinct, and every set alike.
        std::swap(deck[at(k)], deck[at(k + balance::next_below(random, num_experts - k))]);
        // As many choices for each rank, also where experts do not divide.
        ++rows[at(std::int64_t{deck[at(k)]} * num_ranks / num_experts)];
      }
    sum += static_cast<double>(*std::max_element(rows.begin(), rows.end()) * num_ranks) /
           static_cast<double>(tokens * topk);
  }
  return sum / static_cast<double>(rounds);
}

double wire_bytes_per_token(double ranks_per_token, int num_ranks, traffic_shape const& shape) {
  auto const row = [&](wire w) {
    auto const blocks = static_cast<std::size_t>(ceil_div(shape.hidden, scale_block));
    std::size_t const scales = !is_fp8(w) ? 0 : w == wire::fp8_ue8m0 ? blocks : 4 * blocks;
    return static_cast<std::size_t>(shape.hidden) * bytes_of(element_of(w)) + scales;
  };
  auto const visit = row(shape.wire) + route_bytes(shape.topk) + row(shape.combine_wire);
  return ranks_per_token * (num_ranks - 1) / num_ranks * static_cast<double>(visit);
}

}  // namespace ferry
