// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Which slot serves a choice: the table that the sending kernel maps experts by, and the rule by
/// which kernels and hosts choose among replicas.
#pragma once

#include <ferry/base/platform.hpp>

#include <cstdint>

namespace ferry {

/// Spreads tokens evenly and the same everywhere.
FERRY_FN constexpr std::uint32_t replica_hash(std::uint32_t source, std::uint32_t token,
                                              std::uint32_t expert) {
  std::uint64_t z = (std::uint64_t{source} << 32 | token) + 0x9E3779B97F4A7C15u * (expert + 1u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
}

/// The slot that serves `expert` for a token of `source`: one of the expert's candidates, which
/// stand in `candidates` from first[expert] to before first[expert + 1], at least one.
FERRY_FN constexpr std::int32_t replica_slot(std::int32_t const* first,
                                             std::int32_t const* candidates, std::uint32_t source,
                                             std::uint32_t token, std::int32_t expert) {
  std::int32_t const begin = first[expert];
  auto const count = static_cast<std::uint64_t>(first[expert + 1] - begin);
  // The upper half of a product is below `count`, and as even as a remainder.
  std::uint64_t const which =
      replica_hash(source, token, static_cast<std::uint32_t>(expert)) * count >> 32;
  return candidates[begin + static_cast<std::int32_t>(which)];
}

/// Tables, counters and samples of every layer, in memory of the device that sends: a replayed
/// graph sees what was written before its launch. Without tables choices name slots themselves.
struct expert_map {
  std::int32_t const* first = nullptr;       ///< [layers, experts + 1]; null: no tables
  std::int32_t const* candidates = nullptr;  ///< [layers, slots]
  std::uint64_t* loads = nullptr;            ///< [layers, most slots of a rank] rows that came
  std::int32_t* samples = nullptr;  ///< [sampled tokens, layers, K] the last step's choices
  std::int32_t experts = 0;         ///< that choices may name
  std::int32_t layers = 0;
  std::int32_t sampled_tokens = 0;
};

}  // namespace ferry
