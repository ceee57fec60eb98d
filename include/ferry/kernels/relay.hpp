// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What the kernels of one slot work on, beside the step's own frame, where records take two hops.
#pragma once

#include <ferry/kernels/relay_fields.hpp>
#include <ferry/kernels/step.hpp>

namespace ferry {

/// Which rank stands between this one and another: that one itself where both are of one node, else
/// a relay, and this way's place among those that the relay serves.
struct way {
  std::int32_t rank;
  std::int32_t place;  ///< -1: no relay

  FERRY_FN constexpr bool direct() const { return place < 0; }
};

/// Who relays for whom, as one rank sees it. Tables in memory that the kernels' device can read.
struct relay_tables {
  way const* out = nullptr;  ///< [ranks] this rank's records go to .rank on their way to a rank
  way const* in = nullptr;   ///< [ranks] a source's records come from .rank, and go home by it
  std::int32_t const* member = nullptr;   ///< [ranks] the rank's index within its node
  std::int32_t const* sources = nullptr;  ///< [num_sources] that this rank relays for, ascending
  std::int32_t const* members = nullptr;  ///< [num_members] of its node, itself too, ascending
  std::int32_t num_sources = 0;
  std::int32_t num_members = 0;
};

/// What a relay keeps of a step between dispatch and combine, so that the sources' credit can go
/// out before the way home begins. Arrays by name; W sources, M tokens, K choices, C chunks.
struct relay_memory {
  std::int32_t* tokens = nullptr;   ///< [W]
  std::uint16_t* maps = nullptr;    ///< [W, C] tokens that go to any rank of this node
  std::int32_t* choices = nullptr;  ///< [W, M, K] experts of the group, -1: not on this node
};

/// The part of a relay's arguments that stays the same while an exchange lives.
struct relay_frame {
  relay_flag_layout flags;
  relay_layout slot;
  std::size_t flags_offset = 0;  ///< of this slot's relay flags in every window
  std::size_t slot_offset = 0;   ///< of what they cover
  relay_shape shape;             ///< the most of every rank, by which offsets are
  relay_tables tables;
  relay_memory memory;

  FERRY_FN constexpr std::size_t at(relay_field field, std::size_t item = 0) const {
    return slot_offset + slot.offset(field, item);
  }
  FERRY_FN constexpr std::size_t arrived_line(int place) const {
    return flags_offset + flags.offset(relay_flag_field::arrived, static_cast<std::size_t>(place));
  }
  FERRY_FN constexpr std::size_t back_line(int place, int member) const {
    return flags_offset + flags.offset(relay_flag_field::back, pair(place, member));
  }
  /// The item of a field [i, j].
  FERRY_FN constexpr std::size_t pair(int place, int member) const {
    return static_cast<std::size_t>(place) * static_cast<std::size_t>(shape.members) +
           static_cast<std::size_t>(member);
  }
  /// The item of a field [i, token].
  FERRY_FN static constexpr std::size_t record(exchange_shape const& of, int place, int token) {
    return static_cast<std::size_t>(place) * static_cast<std::size_t>(of.round_tokens) +
           static_cast<std::size_t>(token);
  }
  /// The item of `returned`: of rank j of the node (per_rank), or for choice k (per_choice).
  FERRY_FN constexpr std::size_t home_row(exchange_shape const& of, int place, int number,
                                          int token) const {
    return of.per_choice ? record(of, place, token) * static_cast<std::size_t>(of.topk) +
                               static_cast<std::size_t>(number)
                         : pair(place, number) * static_cast<std::size_t>(of.round_tokens) +
                               static_cast<std::size_t>(token);
  }
};

/// The words of a chunk follow the line's first word.
FERRY_FN constexpr std::size_t chunk_word(std::size_t line, int chunk) {
  return line + 8 * (1 + static_cast<std::size_t>(chunk));
}

}  // namespace ferry
