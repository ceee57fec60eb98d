// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/place.hpp>

#include "balance/eplb.hpp"
#include "balance/incremental.hpp"
#include "balance/layer_solvers.hpp"
#include "base/fail.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace ferry {
namespace {

struct policy_name {
  placement_policy policy;
  char const* name;
};
constexpr std::array policy_names = {
    policy_name{placement_policy::contiguous, "contiguous"},
    policy_name{placement_policy::eplb, "eplb"},
    policy_name{placement_policy::permute, "permute"},
    policy_name{placement_policy::local, "local"},
    policy_name{placement_policy::replicate, "replicate"},
    policy_name{placement_policy::hierarchical, "hierarchical"},
    policy_name{placement_policy::incremental, "incremental"},
};

result<void> check_counts(placement_options const& o) {
  if (o.num_ranks < 1)
    return fail(error_code::invalid_argument, "{} ranks; at least 1", o.num_ranks);
  if (o.num_nodes < 1 || o.num_nodes > o.num_ranks)
    return fail(error_code::invalid_argument, "{} nodes of {} ranks; 1 to {}", o.num_nodes,
                o.num_ranks, o.num_ranks);
  if (o.num_groups < 1)
    return fail(error_code::invalid_argument, "{} groups; at least 1", o.num_groups);
  if (!(o.most_over_mean >= 1) || !std::isfinite(o.most_over_mean))
    return fail(error_code::invalid_argument, "most_over_mean is {}; at least 1", o.most_over_mean);
  if (!(o.min_gain >= 0) || !std::isfinite(o.min_gain))
    return fail(error_code::invalid_argument, "min_gain is {}; at least 0", o.min_gain);
  if (o.expert_bytes < 1)
    return fail(error_code::invalid_argument, "expert_bytes is 0; at least 1");
  return {};
}

/// Whether the replicas fit: apart from each other, and into memory.
result<void> check_slots(placement_policy policy, expert_loads const& loads,
                         placement_options const& o) {
  std::int64_t const experts = loads.num_experts;
  std::int64_t const most = experts * (o.num_ranks - 1);
  if (o.redundant < 0 || o.redundant > most)
    return fail(error_code::invalid_argument,
                "{} redundant replicas; 0 to {}: each of {} ranks holds each of {} experts once at "
                "most",
                o.redundant, most, o.num_ranks, experts);
  bool const alone = policy == placement_policy::contiguous || policy == placement_policy::permute;
  if (alone && o.redundant != 0)
    return fail(error_code::invalid_argument, "{}: makes no replicas, but {} are asked for",
                to_string(policy), o.redundant);
  std::int64_t const slots = experts + o.redundant;
  auto const everywhere =
      std::int64_t{o.everywhere} * (std::min<std::int64_t>(o.num_ranks, slots) - 1);
  if (o.everywhere < 0 || o.everywhere > experts || everywhere > o.redundant)
    return fail(error_code::invalid_argument,
                "{} experts on every rank take {} replicas, but {} are asked for", o.everywhere,
                everywhere, o.redundant);
  auto const bytes = static_cast<double>(ceil_div<std::int64_t>(slots, o.num_ranks)) *
                     loads.num_layers * static_cast<double>(o.expert_bytes);
  if (o.rank_memory_bytes != 0 && bytes > static_cast<double>(o.rank_memory_bytes))
    return fail(error_code::capacity,
                "{} slots on a rank in {} layers take {:.0f} bytes, more than the limit of {}",
                ceil_div<std::int64_t>(slots, o.num_ranks), loads.num_layers, bytes,
                o.rank_memory_bytes);
  return {};
}

/// Whether whole groups fit the nodes.
result<void> check_groups(int experts, placement_options const& o) {
  if (o.num_groups < o.num_nodes || experts % o.num_groups != 0)
    return fail(error_code::invalid_argument,
                "hierarchical: {} groups must divide {} experts and give each of {} nodes one",
                o.num_groups, experts, o.num_nodes);
  auto const places = balance::places_of(experts + o.redundant, o.num_ranks);
  auto const groups = balance::places_of(o.num_groups, o.num_nodes);
  for (int n = 0; n < o.num_nodes; ++n) {
    std::int64_t slots = 0, ranks = 0;
    for (int r = 0; r < o.num_ranks; ++r)
      if (owner_of(r, o.num_nodes, o.num_ranks) == n) {
        slots += places[static_cast<std::size_t>(r)];
        ranks += places[static_cast<std::size_t>(r)] > 0;
      }
    std::int64_t const mine =
        std::int64_t{experts / o.num_groups} * groups[static_cast<std::size_t>(n)];
    if (slots < mine || slots > mine * ranks)
      return fail(error_code::invalid_argument,
                  "hierarchical: node {} has {} slots on {} ranks for the {} experts of its groups",
                  n, slots, ranks, mine);
  }
  return {};
}

result<void> check_present(placement const* present, expert_loads const& loads,
                           placement_options const& o) {
  if (!present)
    return fail(error_code::invalid_argument, "incremental: no present placement was given");
  FERRY_CHECK(validate(*present));
  if (present->num_layers != loads.num_layers || present->num_experts != loads.num_experts ||
      present->num_ranks != o.num_ranks || present->num_slots != loads.num_experts + o.redundant)
    return fail(
        error_code::invalid_argument,
        "the present placement has {} layers, {} experts, {} slots and {} ranks; asked for are "
        "{}, {}, {} and {}",
        present->num_layers, present->num_experts, present->num_slots, present->num_ranks,
        loads.num_layers, loads.num_experts, loads.num_experts + o.redundant, o.num_ranks);
  return {};
}

result<void> check_trace(routing_trace const* trace, expert_loads const& loads) {
  if (!trace)
    return fail(
        error_code::invalid_argument,
        "local: no trace of choices was given, and loads do not tell which experts are chosen "
        "together");
  FERRY_CHECK(validate(*trace, loads.num_experts));
  if (trace->num_layers != loads.num_layers)
    return fail(error_code::invalid_argument, "a trace of {} layers for loads of {}",
                trace->num_layers, loads.num_layers);
  return {};
}

result<void> check_policy(placement_policy policy, placement_input const& input,
                          expert_loads const& loads, placement_options const& o) {
  switch (policy) {
    case placement_policy::eplb: return balance::check_eplb(loads.num_experts, o);
    case placement_policy::hierarchical: return check_groups(loads.num_experts, o);
    case placement_policy::incremental: return check_present(input.present, loads, o);
    case placement_policy::local:
      if (input.present) FERRY_CHECK(check_present(input.present, loads, o));
      return check_trace(input.trace, loads);
    default: return {};
  }
}

balance::slot_list solve_layer(placement_policy policy, placement_input const& input,
                               expert_loads const& loads, int l, placement_options const& o) {
  auto const mine = loads.layer(l);
  switch (policy) {
    case placement_policy::eplb: return balance::eplb_layer(mine, o);
    case placement_policy::permute: return balance::permute_layer(mine, o);
    case placement_policy::replicate: return balance::replicate_layer(mine, o);
    case placement_policy::hierarchical: return balance::hierarchical_layer(mine, o);
    case placement_policy::local: {
      balance::slot_list present;
      if (input.present)
        present.assign(input.present->layer(l).begin(), input.present->layer(l).end());
      return balance::local_layer(mine, *input.trace, l, input.present ? &present : nullptr, o);
    }
    default: break;
  }
  balance::slot_list slots(mine.size());
  std::iota(slots.begin(), slots.end(), 0);
  return slots;
}

}  // namespace

char const* to_string(placement_policy policy) {
  return policy_names[static_cast<std::size_t>(policy)].name;
}

std::optional<placement_policy> placement_policy_of(std::string_view name) {
  for (auto const& p : policy_names)
    if (name == p.name) return p.policy;
  return {};
}

double busiest_rank_bound(std::span<double const> loads, int num_ranks) {
  int const experts = static_cast<int>(loads.size());
  std::vector<double> sorted(loads.begin(), loads.end());
  std::sort(sorted.begin(), sorted.end());
  double const mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / num_ranks;
  int const others = std::max(0, experts / num_ranks - 1);
  return std::max(mean, std::accumulate(sorted.begin(), sorted.begin() + others, sorted.back()));
}

result<placement> place(placement_policy policy, placement_input const& input,
                        placement_options const& options) {
  FERRY_TRY(auto loads, average(input.windows));
  FERRY_CHECK(validate(loads));
  FERRY_CHECK(check_counts(options));
  FERRY_CHECK(check_slots(policy, loads, options));
  FERRY_CHECK(check_policy(policy, input, loads, options));
  if (policy == placement_policy::incremental) {
    auto next = balance::incremental(*input.present, loads, options);
    next.num_nodes = options.num_nodes;
    return next;
  }
  placement where{loads.num_layers,
                  loads.num_experts,
                  options.num_ranks,
                  options.num_nodes,
                  loads.num_experts + options.redundant,
                  {}};
  for (int l = 0; l < loads.num_layers; ++l) {
    auto const slots = solve_layer(policy, input, loads, l, options);
    where.experts.insert(where.experts.end(), slots.begin(), slots.end());
  }
  if (policy == placement_policy::eplb) return where;
  // A placement that breaks the rules would send tokens to the wrong experts.
  if (auto right = validate(where); !right)
    return fail(error_code::internal, "{}: {}", to_string(policy), right.error().message);
  return where;
}

}  // namespace ferry
