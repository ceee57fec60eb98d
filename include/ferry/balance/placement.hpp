// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Which expert each slot holds.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/kernels/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

/// Where every expert lives, in each layer. A slot is a place for one expert's weights; slots are
/// numbered through the ranks as an exchange numbers its experts: rank r has the slots
/// [r*S/R, (r+1)*S/R). An expert that lies in several slots has replicas. Ranks are shared out over
/// nodes in the same way. With more ranks than slots some ranks have none.
struct placement {
  int num_layers = 0;
  int num_experts = 0;
  int num_ranks = 1;
  int num_nodes = 1;
  int num_slots = 0;
  std::vector<std::int32_t> experts;  ///< [layers, slots]: the expert in each slot

  std::span<std::int32_t const> layer(int l) const {
    return {experts.data() + static_cast<std::size_t>(l) * static_cast<std::size_t>(num_slots),
            static_cast<std::size_t>(num_slots)};
  }
  std::span<std::int32_t> layer(int l) {
    return {experts.data() + static_cast<std::size_t>(l) * static_cast<std::size_t>(num_slots),
            static_cast<std::size_t>(num_slots)};
  }
  int first_slot(int rank) const { return first_expert_of(rank, num_ranks, num_slots); }
  int slots_of(int rank) const { return first_slot(rank + 1) - first_slot(rank); }
  int rank_of(int slot) const { return owner_of(slot, num_ranks, num_slots); }
  int node_of(int rank) const { return owner_of(rank, num_nodes, num_ranks); }

  bool operator==(placement const&) const = default;
};

/// Whether every layer is a placement that can be run: every expert in at least one slot, never
/// twice on one rank, every slot full, all sizes right. Errors   invalid_argument naming layer,
/// slot and expert
result<void> validate(placement const& where);

/// The placement that an exchange has by itself: slot e holds expert e.
/// Errors   invalid_argument a number below 1, or more nodes than ranks
result<placement> contiguous_placement(int num_layers, int num_experts, int num_ranks,
                                       int num_nodes = 1);

/// Slots whose rank did not hold their expert before, over all layers: what has to be copied to go
/// from one placement to the other. Errors   invalid_argument other layers, experts or ranks
result<std::int64_t> moved_experts(placement const& from, placement const& to);

}  // namespace ferry
