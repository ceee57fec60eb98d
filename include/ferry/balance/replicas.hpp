// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Which replica serves a choice.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/balance/placement.hpp>
#include <ferry/base/result.hpp>
#include <ferry/kernels/expert_map.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

/// How a rank chooses among the replicas of an expert. Every rule gives the same slot for the same
/// source, token and expert on every run.
enum class replica_choice : std::uint8_t {
  hash,         ///< by token, expert and source: every replica gets its even share
  round_robin,  ///< source s always takes replica s modulo their number
  nearest,      ///< on the own rank, else on the own node, else anywhere; the least loaded rank of
                ///< those
};

/// One source's map from experts to slots in one layer: the plain arrays of `expert_map`, by which
/// kernels choose as `slot` does. Rules that do not look at the token leave one candidate per
/// expert.
struct replica_table {
  int source = 0;
  std::vector<std::int32_t> first;       ///< [experts + 1]: where an expert's candidates begin
  std::vector<std::int32_t> candidates;  ///< slots, ascending within an expert

  /// The slot that serves `expert` for the source's token; -1 stays -1.
  std::int32_t slot(std::int32_t expert, std::uint32_t token) const {
    if (expert < 0) return -1;
    return replica_slot(first.data(), candidates.data(), static_cast<std::uint32_t>(source), token,
                        expert);
  }
};

/// The map of rank `source` in one layer. `where` is valid, but for slots that hold nothing (-1)
/// and experts that are nowhere (surviving_experts): such an expert has one candidate, -1.
/// Shapes   loads [experts]: by which `nearest` knows the least loaded rank; may be empty
/// Errors   invalid_argument a layer or source that does not exist, or loads of another size
result<replica_table> replicas_for(placement const& where, int layer, int source,
                                   replica_choice rule, std::span<double const> loads = {});

}  // namespace ferry
