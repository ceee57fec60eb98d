// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Whether splitting a decode step into two microbatches makes it shorter: a small model of cost.
#pragma once

#include <cstdint>
#include <string>

namespace ferry {

/// A decode step of one rank.
struct step_shape {
  int tokens = 128;  ///< that the rank brings
  int moe_layers = 58;
  int experts = 256;  ///< routed, of the whole group
  int topk = 8;
  int hidden = 7168;
  int expert_width = 2048;           ///< inner columns of an expert's three matrices
  double weight_bytes = 1;           ///< of one weight
  double dispatch_row_bytes = 7392;  ///< of a row to the experts, with its scales
  double combine_row_bytes = 14336;
  /// Choices of a token lie in at most so many of `groups` equal groups of experts; 1 of 1:
  /// anywhere.
  int groups = 8;
  int kept_groups = 4;
  /// What a rank computes beside the routed experts, all layers together: communication can hide
  /// behind it as well.
  double other_compute_s = 20e-3;
  /// Weights beside the routed experts that every half reads again, all layers together.
  double other_weight_bytes = 0;
};

/// What the ranks run on. Rates are what is reached, not what is printed on the box.
struct step_hardware {
  int ranks_per_node = 8;
  int nodes = 1;
  double memory_bytes_per_s = 0;   ///< of one rank
  double flops_per_s = 0;          ///< of one rank, in the experts' type
  double link_bytes_per_s = 0;     ///< of one rank to all others of its node
  double network_bytes_per_s = 0;  ///< of one rank to other nodes
  double phase_latency_s = 0;      ///< of each of the four phases of a layer, within a node
  double network_latency_s = 0;    ///< added to each where there is more than one node
  /// Whether communication leaves the units that compute free. CPU ranks whose cores all compute do
  /// not: there is nothing to hide behind.
  bool communicates_beside = true;

  static step_hardware mi300x(int nodes);
  /// Ranks that are threads or processes of one machine with so many cores.
  static step_hardware cpu(int ranks, int cores);
};

struct overlap_verdict {
  bool pays = false;
  double cost_s = 0;    ///< that splitting adds: weights that are read twice
  double hidden_s = 0;  ///< communication that it can hide at best
  std::string why;      ///< one sentence
};

/// Shapes   every count at least 1; rates above 0 where they are used (network: more than one node)
/// Errors   none: a shape or hardware outside of that does not pay, and `why` says what is wrong
overlap_verdict overlap_pays(step_shape const& shape, step_hardware const& hardware);

}  // namespace ferry
