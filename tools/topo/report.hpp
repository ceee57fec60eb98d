// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What ferry-topo says of a machine.
#pragma once

#include <ferry/transport/rails.hpp>

#include <string>
#include <vector>

namespace ferry::topo_tool {

/// A machine, and its ranks.
struct topology {
  std::string from;  ///< where it was read
  machine_map machine;
  rail_kind kind = rail_kind::rdma;  ///< what the rails have in common
  int ranks_per_node = 0;            ///< 0: all ranks are one node
  std::vector<machine_place const*> places;
  std::vector<std::vector<rail>> rails;
  std::vector<std::string> absent;  ///< what was looked for and is not there
};

/// For a person.
std::string table_of(topology const& t);
/// The same for a program.
std::string json_of(topology const& t);

}  // namespace ferry::topo_tool
