// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Which replica serves a choice.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/balance/placement.hpp>
#include <ferry/base/platform.hpp>
#include <ferry/base/result.hpp>

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

/// Spreads tokens evenly and the same everywhere.
FERRY_FN constexpr std::uint32_t replica_hash(std::uint32_t source, std::uint32_t token,
                                              std::uint32_t expert) {
  std::uint64_t z = (std::uint64_t{source} << 32 | token) + 0x9E3779B97F4A7C15u * (expert + 1u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
}

/// One source's map from experts to slots in one layer: plain arrays, so that it can lie in the
/// memory of a device. Rules that do not look at the token leave one candidate per expert.
struct replica_table {
  int source = 0;
  std::vector<std::int32_t> first;       ///< [experts + 1]: where an expert's candidates begin
  std::vector<std::int32_t> candidates;  ///< slots, ascending within an expert

  /// The slot that serves `expert` for the source's token; -1 stays -1.
  std::int32_t slot(std::int32_t expert, std::uint32_t token) const {
    if (expert < 0) return -1;
    auto const begin = first[static_cast<std::size_t>(expert)];
    auto const count = first[static_cast<std::size_t>(expert) + 1] - begin;
    auto const which = count == 1 ? 0u
                                  : replica_hash(static_cast<std::uint32_t>(source), token,
                                                 static_cast<std::uint32_t>(expert)) %
                                        static_cast<std::uint32_t>(count);
    return candidates[static_cast<std::size_t>(begin) + which];
  }
};

/// The map of rank `source` in one layer. `where` is valid.
/// Shapes   loads [experts]: their loads, by which `nearest` knows the least loaded rank; may be
/// empty Errors   invalid_argument a layer or source that does not exist, or loads of another size
result<replica_table> replicas_for(placement const& where, int layer, int source,
                                   replica_choice rule, std::span<double const> loads = {});

}  // namespace ferry
