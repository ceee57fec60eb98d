// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "solve.hpp"

#include <ferry/balance/load_files.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

namespace ferry::place_tool {
namespace {

result<sampled_loads> read(options const& o) {
  if (o.loads_file) return read_sampled_loads(*o.loads_file);
  sampled_loads in;
  FERRY_TRY(auto trace, read_choices(*o.choices_file));
  int const highest = *std::max_element(trace.experts.begin(), trace.experts.end());
  if (highest >= most_count)
    return error{error_code::invalid_argument,
                 fmt::format("{}: expert {}; at most {} experts are possible",
                             o.choices_file->string(), highest, most_count)};
  FERRY_TRY(auto loads, loads_of(trace, o.num_experts.value_or(std::max(0, highest) + 1)));
  in.windows.push_back(std::move(loads));
  in.sample = std::move(trace);
  return in;
}

result<outcome> measure(options const& o, comparison const& all, std::string name,
                        placement where) {
  outcome out;
  out.name = std::move(name);
  FERRY_TRY(out.balance, balance_of(where, all.loads));
  if (all.trace) {
    FERRY_TRY(out.distance, distance_of(where, *all.trace, o.rule));
    out.wire_bytes =
        wire_bytes_per_token(out.distance->ranks_per_token, where.num_ranks, o.traffic);
    for (auto tokens : all.tokens_per_step) {
      FERRY_TRY(auto measured, step_imbalance(where, *all.trace, tokens, o.rule));
      out.step_imbalance.push_back(measured);
    }
  } else {
    out.step_imbalance.resize(all.tokens_per_step.size());
  }
  out.valid = validate(where).has_value();
  out.where = std::move(where);
  return out;
}

result<placement> present_of(options const& o, expert_loads const& loads) {
  if (!o.present_file)
    return contiguous_placement(loads.num_layers, loads.num_experts, o.where.num_ranks,
                                o.where.num_nodes);
  return read_placement(*o.present_file);
}

/// Which policies make sense for what is known. `place` says why the others do not.
std::vector<placement_policy> policies_of(options const& o) {
  if (!o.policies.empty()) return o.policies;
  std::vector<placement_policy> all = {placement_policy::contiguous, placement_policy::eplb,
                                       placement_policy::permute,    placement_policy::local,
                                       placement_policy::replicate,  placement_policy::incremental};
  if (o.where.redundant == 0) std::erase(all, placement_policy::replicate);
  if (o.where.num_nodes > 1) all.push_back(placement_policy::hierarchical);
  return all;
}

double mean_bound(expert_loads const& loads, int num_ranks) {
  double sum = 0;
  for (int l = 0; l < loads.num_layers; ++l) {
    auto const mine = loads.layer(l);
    double const mean = std::accumulate(mine.begin(), mine.end(), 0.0) / num_ranks;
    sum += mean > 0 ? busiest_rank_bound(mine, num_ranks) / mean : 1;
  }
  return sum / loads.num_layers;
}

result<comparison> describe(options const& o, sampled_loads const& in) {
  comparison all;
  FERRY_TRY(all.loads, average(in.windows));
  all.trace = in.sample;
  all.topk = all.trace ? all.trace->topk : o.topk.value_or(std::min(8, all.loads.num_experts));
  all.tokens_per_step = o.tokens_per_step;
  for (auto tokens : all.tokens_per_step) {
    FERRY_TRY(auto floor,
              sampling_floor(tokens, all.topk, all.loads.num_experts, o.where.num_ranks));
    all.floor.push_back(floor);
  }
  all.bound = mean_bound(all.loads, o.where.num_ranks);
  return all;
}

}  // namespace

result<comparison> solve(options const& o) {
  FERRY_TRY(auto in, read(o));
  FERRY_TRY(auto all, describe(o, in));
  options with_topk = o;
  with_topk.traffic.topk = all.topk;
  FERRY_TRY(auto present, present_of(o, all.loads));
  FERRY_TRY(all.present, measure(with_topk, all, "before", present));
  for (auto policy : policies_of(o)) {
    placement_input known{
        .windows = in.windows,
        .trace = all.trace ? &*all.trace : nullptr,
        .present = policy == placement_policy::incremental || o.present_file ? &present : nullptr};
    auto const start = std::chrono::steady_clock::now();
    auto where = place(policy, known, o.where);
    std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
    if (!where && o.policies.empty() && where.error().code == error_code::invalid_argument) {
      all.left_out.push_back(fmt::format("{} ({})", to_string(policy), where.error().message));
      continue;
    }
    if (!where) return where.error();
    FERRY_TRY(auto moved, moved_experts(present, *where));
    FERRY_TRY(auto out, measure(with_topk, all, to_string(policy), std::move(*where)));
    out.moved_bytes = static_cast<std::size_t>(moved) * o.where.expert_bytes;
    out.seconds = took.count();
    all.outcomes.push_back(std::move(out));
  }
  if (all.outcomes.empty())
    return error{error_code::invalid_argument,
                 fmt::format("no policy applies: {}", all.left_out.front())};
  return all;
}

}  // namespace ferry::place_tool
