// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/overlap_pays.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ferry {
namespace {

double milliseconds(double seconds) {
  return seconds * 1e3;
}

/// Chance that none of `kept` of `groups` groups lies in a part that holds `part` of them.
double chance_of_none(int groups, int kept, int part) {
  double chance = 1;
  for (int i = 0; i < kept; ++i)
    chance *= std::max(0.0, static_cast<double>(groups - part - i)) / (groups - i);
  return chance;
}

/// How many of `places` equal parts of the experts a token's choices lie in, on average.
double distinct(step_shape const& s, int places) {
  if (places <= 1) return 1;
  bool const grouped = s.groups > 1 && s.kept_groups < s.groups;
  if (grouped && places <= s.groups)
    return places * (1 - chance_of_none(s.groups, s.kept_groups, s.groups / places));
  // Of the places that may be chosen at all, each is missed by all choices with the same chance.
  double const open = grouped ? static_cast<double>(places) * s.kept_groups / s.groups : places;
  return open * (1 - std::pow(1 - 1 / open, s.topk));
}

/// Seconds that a rank's experts take for so many tokens of every rank, all layers.
double experts_s(step_shape const& s, step_hardware const& h, double tokens) {
  int const ranks = h.ranks_per_node * h.nodes;
  double const local = std::max(1.0, static_cast<double>(s.experts) / ranks);
  double const weights = 3.0 * s.hidden * s.expert_width;
  // Experts that nobody chooses are not read.
  double const choices = tokens * ranks * s.topk;
  double const touched = local * (1 - std::pow(1 - 1.0 / s.experts, choices));
  double const read = touched * weights * s.weight_bytes / h.memory_bytes_per_s;
  double const compute = h.flops_per_s > 0 ? 2 * weights * tokens * s.topk / h.flops_per_s : 0;
  return s.moe_layers * std::max(read, compute);
}

double communication_s(step_shape const& s, step_hardware const& h) {
  double const row = s.dispatch_row_bytes + s.combine_row_bytes;
  int const ranks = h.ranks_per_node * h.nodes;
  double const places = distinct(s, ranks);
  // A token's row crosses once to each node, and once to each rank there.
  double const to_nodes = h.nodes > 1 ? distinct(s, h.nodes) * (h.nodes - 1) / h.nodes : 0;
  double const within = places * (h.ranks_per_node - 1) / h.ranks_per_node;
  double seconds = 4 * h.phase_latency_s;
  if (h.ranks_per_node > 1) seconds += s.tokens * within * row / h.link_bytes_per_s;
  if (h.nodes > 1)
    seconds += 4 * h.network_latency_s + s.tokens * to_nodes * row / h.network_bytes_per_s;
  return s.moe_layers * seconds;
}

char const* what_is_wrong(step_shape const& s, step_hardware const& h) {
  if (s.moe_layers < 1 || s.experts < 1 || s.topk < 1 || s.hidden < 1 || s.expert_width < 1 ||
      s.groups < 1 || s.kept_groups < 1 || s.weight_bytes <= 0)
    return "a count of the shape is below 1";
  if (h.ranks_per_node < 1 || h.nodes < 1) return "there are no ranks";
  if (h.memory_bytes_per_s <= 0) return "the rate of memory is not known";
  if (h.ranks_per_node > 1 && h.link_bytes_per_s <= 0)
    return "the rate of links within a node is not known";
  if (h.nodes > 1 && h.network_bytes_per_s <= 0) return "the rate of the network is not known";
  return nullptr;
}

}  // namespace

step_hardware step_hardware::mi300x(int nodes) {
  step_hardware h;
  h.ranks_per_node = 8;
  h.nodes = nodes;
  h.memory_bytes_per_s = 0.85 * 5.3e12;
  h.flops_per_s = 0.5 * 2.6e15;
  h.link_bytes_per_s = 300e9;    // seven links of xGMI
  h.network_bytes_per_s = 45e9;  // one NIC of 400 Gb/s
  h.phase_latency_s = 14e-6;     // a launch, and one and a half trips
  h.network_latency_s = 10e-6;
  return h;
}

step_hardware step_hardware::cpu(int ranks, int cores) {
  step_hardware h;
  h.ranks_per_node = ranks;
  h.memory_bytes_per_s = 20e9 / ranks;
  h.flops_per_s = 50e9;
  h.link_bytes_per_s = 5e9;
  h.phase_latency_s = 5e-6;
  h.communicates_beside = cores >= 2 * ranks;
  return h;
}

overlap_verdict overlap_pays(step_shape const& s, step_hardware const& h) {
  overlap_verdict v;
  if (char const* const wrong = what_is_wrong(s, h)) {
    v.why = fmt::format("It cannot be told whether splitting pays: {}.", wrong);
    return v;
  }
  if (s.tokens < 2) {
    v.why = fmt::format("A step of {} token(s) cannot be split.", s.tokens);
    return v;
  }
  if (h.ranks_per_node * h.nodes == 1) {
    v.why = "One rank alone has nobody to communicate with.";
    return v;
  }
  double const whole = experts_s(s, h, s.tokens);
  v.cost_s = std::max(0.0, 2 * experts_s(s, h, s.tokens / 2.0) - whole) +
             s.other_weight_bytes / h.memory_bytes_per_s;
  double const communication = communication_s(s, h);
  // The first half's first phase and the last one's last phase have nothing beside them.
  double const ends = communication / (2.0 * s.moe_layers);
  v.hidden_s =
      h.communicates_beside ? std::min(communication - ends, whole + s.other_compute_s) : 0;
  if (!h.communicates_beside) {
    v.why = "The cores that compute also communicate, so that there is nothing to hide behind.";
    return v;
  }
  v.pays = v.hidden_s > v.cost_s;
  v.why = fmt::format(
      "Splitting reads the experts' weights twice, which costs {:.1f} ms of a step, and can hide "
      "{:.1f} ms of communication on {} node{}: it {}.",
      milliseconds(v.cost_s), milliseconds(v.hidden_s), h.nodes, h.nodes == 1 ? "" : "s",
      v.pays ? "pays" : "does not pay");
  return v;
}

}  // namespace ferry
