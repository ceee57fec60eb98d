// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Solvers for one layer. Each returns the expert in each slot.
#pragma once

#include "balance/partition.hpp"

#include <ferry/balance/place.hpp>

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ferry::balance {

using slot_list = std::vector<std::int32_t>;

/// Replicas to deal out over some ranks: items are replicas, kinds are experts. `replicas` keeps
/// the expert of each item.
struct replica_problem {
  partition_problem items;
  std::vector<int> expert;
};

/// Places of each rank when `slots` are shared out.
std::vector<int> places_of(int num_slots, int num_ranks);
/// One item per replica, each with an even share of its expert's load.
replica_problem problem_of(std::span<double const> loads, std::span<int const> copies,
                           std::vector<int> places, int num_nodes = 1);
/// The items of the problem in slots, ascending by expert within a rank.
slot_list slots_of(partition const& p, std::vector<int> const& expert);
/// As a partition; the order within ranks is lost.
/// `slots` has the copies of the problem.
std::vector<int> ranks_of(slot_list const& slots, replica_problem const& problem);
/// The load of the busiest rank.
double busiest_rank(slot_list const& slots, std::span<double const> loads, int num_ranks);

/// The busiest rank may be this far above what no placement can be below before search goes on.
inline constexpr double close_enough = 1 + 1e-4;

/// Copies of each expert: always one more for whose copies carry most, at most `most` of one.
std::vector<int> apportion(std::span<double const> loads, int num_slots, int most, int everywhere);

/// How equal loads are wanted.
struct balance_goal {
  int num_nodes = 1;   ///< the copies of an expert lie on as many nodes as they can
  int everywhere = 0;  ///< this many of the hottest experts lie on every rank
  /// Search goes on while the busiest rank is above this, even where it is close enough.
  double at_most = std::numeric_limits<double>::infinity();
};

/// Equal loads over ranks with these places, with as many copies as there are places.
slot_list balanced(std::span<double const> loads, std::vector<int> const& places,
                   balance_goal const& goal);

slot_list permute_layer(std::span<double const> loads, placement_options const& options);
slot_list replicate_layer(std::span<double const> loads, placement_options const& options);
/// The conditions are checked: groups divide the experts and nodes hold their groups.
slot_list hierarchical_layer(std::span<double const> loads, placement_options const& options);
slot_list local_layer(std::span<double const> loads, routing_trace const& trace, int layer,
                      slot_list const* present, placement_options const& options);

}  // namespace ferry::balance
