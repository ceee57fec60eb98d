// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Which expert goes from where to where, and when.
#pragma once

#include <ferry/balance/placement.hpp>

#include <vector>

namespace ferry {

/// Slots are numbered through all ranks.
struct expert_move {
  int layer = 0;
  int expert = 0;
  int from_slot = 0;
  int to_slot = 0;
  int from_rank = 0;
  int to_rank = 0;
  int spare = 0;  ///< of the receiver
};

/// Layers that change together.
struct move_round {
  std::vector<int> layers;
  std::vector<expert_move> moves;
};

/// The moves from one placement to another, in as few rounds of whole layers, in their order, as
/// `spare_slots` allows on every rank. An expert with replicas comes from the node it goes to if it
/// is there, else from the rank that has sent least. The same on every rank.
/// Errors   capacity a layer needs more spare slots on a rank
result<std::vector<move_round>> plan_moves(placement const& from, placement const& to,
                                           int spare_slots);

}  // namespace ferry
