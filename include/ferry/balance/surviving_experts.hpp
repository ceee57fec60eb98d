// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Which experts are left when a group goes on without some of its ranks, and how tokens find them.
#pragma once

#include <ferry/balance/placement.hpp>
#include <ferry/balance/replicas.hpp>
#include <ferry/base/matrix.hpp>
#include <ferry/base/result.hpp>
#include <ferry/exchange.hpp>
#include <ferry/group.hpp>

#include <cstdint>
#include <vector>

namespace ferry {

/// A placement without the slots of lost ranks. Experts keep their numbers, and each stays in the
/// slot of its rank that it was in, so that no weights move; slots are numbered anew, through the
/// ranks that go on. Choices of an expert that is left go to the replicas that are left; those of a
/// lost one are skipped and counted (exchange_counters::ids_out_of_range). So that the tables have
/// room to say so, every rank gets some slots that hold nothing: the first are those it had.
class surviving_experts {
 public:
  /// `joined` is the placement of the group as it joined, also after several calls of `without`.
  /// Errors   invalid_argument `joined` is no valid placement, or not of as many ranks
  static result<surviving_experts> of(placement const& joined, group const& now);

  /// For exchange_options; num_experts and layers stay what they were.
  int expert_slots() const { return where_.num_slots; }
  /// Of the ranks that go on, by their new numbers; -1 where a slot holds nothing. Not for
  /// solvers or migrations, which want every expert somewhere. One node.
  placement const& where() const { return where_; }
  /// False for what is no expert.
  bool is_lost(int layer, std::int64_t expert) const {
    return layer >= 0 && layer < where_.num_layers && expert >= 0 && expert < where_.num_experts &&
           lost_[static_cast<std::size_t>(layer * std::int64_t{where_.num_experts} + expert)];
  }
  /// Over all layers.
  std::int64_t num_lost() const;

  /// Writes this rank's tables. Ranks do it between the same two steps.
  /// Errors   invalid_argument another number of layers, experts, slots or ranks; those of
  ///          exchange::write_tables
  result<void> apply(exchange& to, replica_choice rule) const;

  /// Makes up for lost choices, on the host: the weights that a token keeps grow so that they sum
  /// to what they did before, unless none is left. Choices stay as they are.
  /// Shapes   choices, weights [tokens, topk]
  /// Returns  how many choices are lost
  std::int64_t renormalise(int layer, matrix<std::int32_t const> choices,
                           matrix<float> weights) const;

 private:
  placement where_;
  std::vector<bool> lost_;  ///< [layers, experts]
};

}  // namespace ferry
