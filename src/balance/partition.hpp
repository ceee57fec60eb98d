// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Items dealt out to ranks with a fixed number of places each, so that the busiest rank has
/// little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry::balance {

/// Items of one layer: experts, or their replicas. Items of one kind never meet on a rank. There
/// are as many places as items.
struct partition_problem {
  std::vector<double> load;  ///< [items]
  std::vector<int> kind;     ///< [items], 0..kinds-1; empty where every item is its own kind
  int num_kinds = 0;
  std::vector<int> places;  ///< [ranks]
  /// [ranks]: where given, and items have kinds, a kind is spread over as many nodes as it can be.
  std::vector<int> node = {};
  int num_nodes = 1;

  int num_items() const { return static_cast<int>(load.size()); }
  int num_ranks() const { return static_cast<int>(places.size()); }
};

/// What the busiest rank has at least: the mean over ranks with places, or for any k the load that
/// the k heaviest items bring to the ranks that share them, together with the lightest others
/// there; whole loads make whole sums. Kinds are not looked at.
double lower_bound(partition_problem const& problem);

/// A full assignment, with the members of each rank by falling load. Swaps keep it full.
class partition {
 public:
  /// `rank_of` gives every item a rank and fills all places.
  partition(partition_problem const& problem, std::vector<int> rank_of);

  partition_problem const& problem() const { return *problem_; }
  std::vector<int> const& rank_of() const { return rank_of_; }
  int rank_of(int item) const { return rank_of_[static_cast<std::size_t>(item)]; }
  double item_load(int item) const { return problem_->load[static_cast<std::size_t>(item)]; }
  double load(int rank) const { return load_[static_cast<std::size_t>(rank)]; }
  std::span<int const> members(int rank) const { return members_[static_cast<std::size_t>(rank)]; }
  int num_ranks() const { return problem_->num_ranks(); }
  int busiest() const;
  double most() const { return load(busiest()); }

  /// Whether the two may change places: no rank would hold a kind twice, and their kinds would not
  /// be on fewer nodes together.
  bool may_swap(int a, int b) const;
  void swap(int a, int b);
  bool holds(int rank, int kind) const {
    return held_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(problem_->num_kinds) +
                 static_cast<std::size_t>(kind)] != 0;
  }

 private:
  std::size_t cell_of_node(int rank, int item) const {
    return static_cast<std::size_t>(problem_->node[static_cast<std::size_t>(rank)]) *
               static_cast<std::size_t>(problem_->num_kinds) +
           static_cast<std::size_t>(problem_->kind[static_cast<std::size_t>(item)]);
  }
  bool keeps_nodes(int a, int b) const;
  void move(int item, int to);
  void add_up(int rank);

  partition_problem const* problem_;
  std::vector<int> rank_of_;
  std::vector<double> load_;
  std::vector<std::vector<int>> members_;
  std::vector<char> held_;    // [ranks, kinds], where there are kinds
  std::vector<int> on_node_;  // [nodes, kinds]: items there, where kinds are spread over nodes
};

/// Heaviest first, each to the least loaded rank that has a place and not yet its kind; of those,
/// to the nodes with the fewest of its kind. No kind has more items than there are ranks with
/// places.
std::vector<int> heaviest_first(partition_problem const& problem);

/// Swaps pairs, and pairs of pairs, between the busiest rank and others until its load is at most
/// `enough` or nothing helps; then, if it is more, starts again from shaken copies, `shakes` times.
/// Never makes the busiest rank busier.
void level(partition& p, double enough, int shakes);

/// Swaps pairs while that lowers the busiest rank, and beyond `enough` as long as it is cheap.
void level_by_pairs(partition& p);

}  // namespace ferry::balance
