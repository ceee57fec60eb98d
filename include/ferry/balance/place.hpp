// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Finds where experts should live.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/balance/placement.hpp>
#include <ferry/balance/routing_trace.hpp>
#include <ferry/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace ferry {

/// How experts are given their slots. Replicas of an expert count as sharing its load evenly.
enum class placement_policy : std::uint8_t {
  contiguous,  ///< slot e holds expert e; no replicas
  eplb,     ///< what DeepSeek's EPLB gives, slot for slot, for comparison. It may put two replicas
            ///< of an expert on one rank, which `validate` refuses
  permute,  ///< equal loads, no replicas
  local,    ///< loads within `most_over_mean`, and as few ranks per token as that allows
  replicate,     ///< equal loads with `redundant` replicas, spread over nodes
  hierarchical,  ///< whole routing groups on a node, then `replicate` within it
  incremental,   ///< few moves away from the present placement
};

/// The policy's name as it stands above.
char const* to_string(placement_policy policy);
std::optional<placement_policy> placement_policy_of(std::string_view name);

/// What to place for. Slots are experts plus `redundant`, shared out over the ranks.
struct placement_options {
  int num_ranks = 1;
  int num_nodes = 1;
  int num_groups = 1;  ///< routing groups, equal runs of experts; eplb and hierarchical use them
  int redundant = 0;   ///< replicas beyond one of each expert, over all ranks
  int everywhere = 0;  ///< replicate: this many of the hottest experts get a replica on every rank
  /// local, incremental: the busiest rank may have this many times the mean. Where one expert alone
  /// has more, or a rank's slots allow no less, as little more as can be.
  double most_over_mean = 1.05;
  /// incremental: the present placement stays unless the busiest ranks' loads, summed over the
  /// layers, fall by this many times the mean.
  double min_gain = 0;
  std::size_t expert_bytes = 1;       ///< weights of one expert in one layer
  std::size_t rank_memory_bytes = 0;  ///< most that a rank's slots may take; 0 is no limit
  /// incremental: most bytes to move
  std::size_t most_moved_bytes = std::numeric_limits<std::size_t>::max();
};

/// What is known.
/// Lifetime borrowed until `place` returns
struct placement_input {
  std::span<expert_loads const> windows;  ///< at least one, all of one shape
  routing_trace const* trace = nullptr;   ///< local needs it
  placement const* present = nullptr;     ///< incremental needs it; local tries it as a start
};

/// Places the experts of every layer. Everything but `eplb` keeps `validate`. The same input gives
/// the same placement on every machine. Errors   invalid_argument loads, trace or present placement
/// that do not fit, more replicas than the
///          ranks can hold apart, groups or nodes that do not divide as the policy needs it, or no
///          trace or present placement where it is needed; capacity slots beyond
///          `rank_memory_bytes`
result<placement> place(placement_policy policy, placement_input const& input,
                        placement_options const& options);

/// What the busiest rank has at least, whatever the permutation: the mean, or the hottest expert
/// together with the smallest others that must share its rank. Shapes   loads [experts], each at
/// least 0; num_ranks at least 1
double busiest_rank_bound(std::span<double const> loads, int num_ranks);

}  // namespace ferry
