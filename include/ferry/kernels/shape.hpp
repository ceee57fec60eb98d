// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The fixed sizes of an exchange, as kernels see them.
#pragma once

#include <ferry/base/types.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

/// Most tokens that share an arrived word, whose map has a bit for each.
inline constexpr int max_chunk_tokens = 16;

/// First expert of `rank` when `experts` are shared out over `ranks`: floor(rank * experts /
/// ranks).
FERRY_FN constexpr int first_expert_of(int rank, int ranks, int experts) {
  return static_cast<int>(std::int64_t{rank} * experts / ranks);
}

/// The rank that owns `expert`: the last one whose first expert is not after it.
FERRY_FN constexpr int owner_of(int expert, int ranks, int experts) {
  return static_cast<int>(((std::int64_t{expert} + 1) * ranks - 1) / experts);
}

/// Most choices of a token.
inline constexpr int max_topk = 32;

/// Which rows ranks take in different flavours of fp8, so that a sender makes both.
enum class mixed_rows : std::uint8_t { none, sent, returned, both };

/// E4M3 rows with f32 scales in a receiver's flavour.
FERRY_FN constexpr wire e4m3_wire(bool fnuz) {
  return fnuz ? wire::fp8_e4m3fnuz : wire::fp8_e4m3;
}

/// Sizes that never change while an exchange lives; equal on all ranks but for `rank`,
/// `most_blocks` and the flavours of `mixed` rows.
struct exchange_shape {
  int rank = 0;
  int ranks = 1;
  int experts = 1;
  int topk = 1;
  int hidden = 1;
  int max_tokens = 1;    ///< M: most tokens of a rank in one step
  int round_tokens = 1;  ///< M': most tokens of a rank in one round
  int chunk_tokens = 1;  ///< C: tokens that share an arrived word
  bool per_choice = false;

  wire sent = wire::bf16;               ///< format of rows to the experts
  wire returned = wire::bf16;           ///< format of rows home
  mixed_rows mixed = mixed_rows::none;  ///< `sent`, `returned`: as this rank takes them
  int most_blocks = 0;        ///< B: a launch has that many, or fewer; 0: all have the same number
  std::size_t row_bytes = 0;  ///< of a row in flight to the experts
  std::size_t scale_bytes = 0;  ///< of its scales
  std::size_t home_bytes = 0;   ///< of a row in flight home
  std::size_t home_scale_bytes = 0;

  FERRY_FN constexpr bool sends_both() const {
    return (static_cast<int>(mixed) & static_cast<int>(mixed_rows::sent)) != 0;
  }
  FERRY_FN constexpr bool returns_both() const {
    return (static_cast<int>(mixed) & static_cast<int>(mixed_rows::returned)) != 0;
  }
  FERRY_FN constexpr int max_rounds() const { return ceil_div(max_tokens, round_tokens); }
  /// Chunks of a full round.
  FERRY_FN constexpr int round_chunks() const { return ceil_div(round_tokens, chunk_tokens); }
  /// Chunks of a full step, numbered round by round.
  FERRY_FN constexpr int step_chunks() const { return max_rounds() * round_chunks(); }
  FERRY_FN constexpr int first_expert(int of_rank) const {
    return first_expert_of(of_rank, ranks, experts);
  }
  FERRY_FN constexpr int local_experts(int of_rank) const {
    return first_expert(of_rank + 1) - first_expert(of_rank);
  }
  /// Most experts that any rank owns.
  FERRY_FN constexpr int most_local_experts() const { return ceil_div(experts, ranks); }
  /// Epochs that a step takes: one, or one for each possible round of dispatch and of combine. An
  /// odd number, so that the same word of two steps in a row differs in its lower half, where
  /// sleepers look (R11).
  FERRY_FN constexpr std::uint64_t step_epochs() const {
    return max_rounds() == 1 ? 1 : 2 * static_cast<std::uint64_t>(max_rounds()) + 1;
  }
  /// Rows that come home per token from one rank's slot of the returned array.
  FERRY_FN constexpr int home_rows_per_token() const { return per_choice ? topk : 1; }
};

}  // namespace ferry
