// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Which ranks are of one node, and who relays for whom between nodes.
#pragma once

#include <ferry/group.hpp>
#include <ferry/kernels/relay.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ferry {

/// The nodes of a group: each rank's, numbered by their first ranks.
struct node_map {
  std::vector<std::int32_t> node;                  ///< [ranks]
  std::vector<std::int32_t> member;                ///< [ranks] index within its node
  std::vector<std::vector<std::int32_t>> members;  ///< by node, ascending

  /// `first`: for each rank the lowest rank of its node.
  static node_map of(std::vector<std::int32_t> const& first);
  /// Nodes of so many ranks in order; the last may have fewer. 0: one node.
  static node_map of_equal(int ranks, int ranks_per_node);

  int size() const { return static_cast<int>(members.size()); }
  int most_members() const;
  /// The rank of node `to` by which `rank`'s records get there: the one with its index, counted
  /// round where the node has fewer ranks.
  std::int32_t relay(int rank, int to) const;
  /// The most that any relay serves.
  relay_shape shape() const;
};

/// The nodes of the group. Collective.
/// Errors   as group::all_gather; malformed_input
result<node_map> find_nodes(group const& ranks);

/// The tables of one rank.
struct node_paths {
  node_paths(node_map const& nodes, int rank);
  relay_tables view() const;

  relay_shape shape;
  std::vector<way> out, in;  ///< [ranks]
  std::vector<std::int32_t> member, sources, members;
};

}  // namespace ferry
