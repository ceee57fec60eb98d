// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How good a placement is.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/balance/placement.hpp>
#include <ferry/balance/replicas.hpp>
#include <ferry/balance/routing_trace.hpp>
#include <ferry/base/result.hpp>
#include <ferry/base/types.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ferry {

/// Loads of ranks, each replica with an even share of its expert.
struct rank_balance {
  std::vector<double> rank_loads;     ///< [layers, ranks]
  std::vector<double> max_over_mean;  ///< [layers]; 1 for a layer without load
  double mean = 1;                    ///< of max_over_mean over the layers
  double worst = 1;
  /// Sum of the busiest ranks' loads over that of the means: what a step waits for, since every
  /// layer ends when its busiest rank does.
  double time_weighted = 1;
};

/// Errors   invalid_argument what `validate` refuses, or other layers or experts than the
/// placement's
result<rank_balance> balance_of(placement const& where, expert_loads const& loads);

/// How far tokens travel.
struct token_distance {
  double ranks_per_token = 0;  ///< distinct ranks that a token visits in a layer
  double nodes_per_token = 0;
};

/// Token t comes from rank t modulo R.
/// Errors   invalid_argument what `validate` refuses, or other layers or experts than the
/// placement's
result<token_distance> distance_of(placement const& where, routing_trace const& trace,
                                   replica_choice rule = replica_choice::hash);

/// The mean of the busiest rank over the mean rank in steps of `tokens_per_step` tokens of the
/// trace, in their order, over steps and layers. nullopt where the trace is shorter than one step.
/// Errors   invalid_argument as `distance_of`, or tokens_per_step below 1
result<std::optional<double>> step_imbalance(placement const& where, routing_trace const& trace,
                                             std::int64_t tokens_per_step,
                                             replica_choice rule = replica_choice::hash);

/// What `step_imbalance` shows on average even where every expert is equally likely and every rank
/// has its even share: chance makes some rank busier than others. By simulation, with the same
/// numbers each time; good to about 0.005 at 128 tokens and better above. Errors   invalid_argument
/// a number below 1, or topk above the experts
result<double> sampling_floor(std::int64_t tokens_per_step, int topk, int num_experts,
                              int num_ranks);

/// Sizes that turn distances into bytes.
struct traffic_shape {
  int hidden = 7168;
  int topk = 8;
  ferry::wire wire = wire::fp8_e4m3;      ///< to the experts
  ferry::wire combine_wire = wire::bf16;  ///< home
};

/// Bytes that a token sends to other ranks in one layer and gets back, with the reduction per_rank:
/// a row with its scales and route to each rank that it visits, and a row from each. A token comes
/// from each rank alike, so one in R of the visits is to its own rank and costs nothing.
double wire_bytes_per_token(double ranks_per_token, int num_ranks, traffic_shape const& shape);

}  // namespace ferry
