// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What all kernels of one microbatch slot work on.
#pragma once

#include <ferry/kernels/expert_map.hpp>
#include <ferry/kernels/partition.hpp>
#include <ferry/kernels/shape.hpp>
#include <ferry/kernels/window_fields.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

/// The four kernels of a step, each with its own step counter (R1).
enum class phase : std::uint8_t { send, receive, give_back, gather };
inline constexpr int num_phases = 4;

/// What is counted while steps run; in device memory, added to atomically.
enum class tally : std::uint8_t {
  sent_bytes,
  sent_self_bytes,
  returned_bytes,
  returned_self_bytes,
  ids_out_of_range,
  rows_received,
  rows_without_room,  ///< received, but past the capacity
  tokens_misstated,   ///< steps whose token count in device memory was out of range, and was cut
  count_
};

/// How received rows are laid out. `capacity`: positions in all; `per_expert`: 0, or in the padded
/// layout the positions of each expert.
struct positions {
  std::int64_t capacity = 0;
  std::int64_t per_expert = 0;
  int align = 1;
  bool in_place = false;  ///< rows stay in the inbox; only the index is written
};

/// This rank's private memory for one slot. Arrays by name, shapes in brackets; R ranks, M tokens,
/// K choices, L local experts, B blocks.
struct step_memory {
  // The source's own routing, kept for the gather (R7).
  std::int32_t* choices = nullptr;         ///< [M, K] expert ids, -1 where there is none
  float* weights = nullptr;                ///< [M, K]
  std::int32_t* num_tokens = nullptr;      ///< [1]
  std::uint32_t* expert_counts = nullptr;  ///< [experts], scratch of the counting pass

  // What arrived, copied out of the window while receiving, so that `done` may go out early (R6).
  std::int32_t* seen_tokens = nullptr;  ///< [R] tokens that each source brought to the step
  std::int32_t* rounds = nullptr;       ///< [1] rounds that this step takes
  std::uint16_t* maps = nullptr;        ///< [R, step chunks]
  std::int32_t* plan = nullptr;         ///< [R, M, K] position of each choice, or one of below
  float* plan_weights = nullptr;        ///< [R, M, K]
  std::int64_t* cursors = nullptr;      ///< [max(B, R), L] next position, kept between rounds
  std::int32_t* starts = nullptr;       ///< [L]
  std::int32_t* counts = nullptr;       ///< [L] rows that are there
  std::int32_t* wanted = nullptr;       ///< [L] rows that came
  std::int32_t* end = nullptr;          ///< [1]
  std::int32_t* index = nullptr;        ///< [capacity], in_place only: position -> inbox row
  std::byte* rows = nullptr;            ///< [capacity, row_stride]
  std::byte* scales = nullptr;          ///< [capacity, scale_stride]
  std::size_t row_stride = 0;
  std::size_t scale_stride = 0;

  std::uint64_t* ticks = nullptr;            ///< [phases, B] last epoch of the kernel's last step
  std::uint64_t* tallies = nullptr;          ///< [tally]
  std::byte const* receives_fnuz = nullptr;  ///< [R] whether a rank's fp8 is FNUZ
  std::int32_t const* owners = nullptr;      ///< [experts] rank that owns each
};
inline constexpr std::int32_t not_here = -1;  ///< in `plan`: the choice belongs to another rank
inline constexpr std::int32_t no_room = -2;   ///< in `plan`: here, but past the capacity

/// The part of every kernel's arguments that stays the same while an exchange lives.
struct step_frame {
  exchange_shape shape;
  flag_layout flags;
  slot_layout slot;
  std::size_t flags_offset = 0;  ///< of this slot's flags in every window
  std::size_t slot_offset = 0;   ///< of its rows
  positions layout;
  step_memory memory;
  expert_map placed;

  FERRY_FN constexpr std::size_t at(slot_field field, std::size_t item = 0) const {
    return slot_offset + slot.offset(field, item);
  }
  /// The record of token `token` of `source`, or of its row home, in units of the field's stride.
  FERRY_FN constexpr std::size_t at(slot_field field, int source, int token) const {
    return at(field,
              static_cast<std::size_t>(source) * static_cast<std::size_t>(shape.round_tokens) +
                  static_cast<std::size_t>(token));
  }
  /// A source's header word, or a peer's done word.
  FERRY_FN constexpr std::size_t line_head(flag_field kind, int rank) const {
    return flags_offset + flags.offset(kind, static_cast<std::size_t>(rank));
  }
  FERRY_FN constexpr std::size_t chunk_flag(flag_field kind, int rank, int chunk) const {
    return line_head(kind, rank) + 8 * (1 + static_cast<std::size_t>(chunk));
  }
  /// Index of (source, token of the step, choice 0) in plan and plan_weights.
  FERRY_FN constexpr std::size_t planned(int source, int token) const {
    return (static_cast<std::size_t>(source) * static_cast<std::size_t>(shape.max_tokens) +
            static_cast<std::size_t>(token)) *
           static_cast<std::size_t>(shape.topk);
  }
  FERRY_FN constexpr std::size_t map_index(int source, int round, int chunk) const {
    return static_cast<std::size_t>(source) * static_cast<std::size_t>(shape.step_chunks()) +
           static_cast<std::size_t>(round * shape.round_chunks() + chunk);
  }
  /// Tokens of a step of `tokens` that belong to `round`.
  FERRY_FN constexpr int tokens_in_round(int tokens, int round) const {
    int const left = tokens - round * shape.round_tokens;
    return left < 0 ? 0 : left < shape.round_tokens ? left : shape.round_tokens;
  }
};

/// The place of a row on its way home: of rank d (per_rank), or for choice k (per_choice).
FERRY_FN constexpr std::size_t home_row(step_frame const& frame, int number, int in_round) {
  auto const n = static_cast<std::size_t>(number), token = static_cast<std::size_t>(in_round);
  return frame.shape.per_choice ? token * static_cast<std::size_t>(frame.shape.topk) + n
                                : n * static_cast<std::size_t>(frame.shape.round_tokens) + token;
}

/// Where a team's scratch holds the route while it sends: behind a row and two sets of scales.
FERRY_FN constexpr std::size_t scratch_for_route(exchange_shape const& shape) {
  return round_up(shape.row_bytes, row_align) + 2 * round_up(shape.scale_bytes, row_align);
}
/// And where the row in the other flavour: behind the route.
FERRY_FN constexpr std::size_t scratch_for_other_row(exchange_shape const& shape) {
  return round_up(scratch_for_route(shape) + route_bytes(shape.topk), std::size_t{64});
}
/// Bytes of scratch that each team needs for rows, in any kernel.
constexpr std::size_t row_scratch_bytes(exchange_shape const& shape) {
  std::size_t const home = round_up(shape.home_bytes, row_align) + shape.home_scale_bytes;
  std::size_t const other = shape.sends_both() ? round_up(shape.row_bytes, row_align) : 0;
  std::size_t const out = scratch_for_other_row(shape) + other;
  return round_up(home > out ? home : out, std::size_t{64});
}
/// Bytes of scratch that the teams of a block share, in any kernel: a map per rank, or a cursor per
/// expert.
constexpr std::size_t block_scratch_bytes(exchange_shape const& shape) {
  std::size_t const maps = 4 * static_cast<std::size_t>(shape.ranks);
  std::size_t const cursors = 8 * static_cast<std::size_t>(shape.most_local_experts());
  return maps > cursors ? maps : cursors;
}

/// The epochs of the step that a kernel is in. A block counts its own steps, so a replayed graph
/// advances by itself and no two blocks of a launch share a counter. Those of blocks that a launch
/// goes without are counted by the others: each block has the numbers that are its own, plus any
/// multiple of the launch's blocks.
class step_clock {
 public:
  template <class Team>
  FERRY_FN step_clock(Team const& t, step_frame const& frame, phase p, bool first_of_step)
      : tick_(frame.memory.ticks + static_cast<int>(p) * most_blocks(t, frame) + t.block()),
        left_(most_blocks(t, frame) - t.block()),
        rounds_(static_cast<std::uint64_t>(frame.shape.max_rounds())),
        epochs_(frame.shape.step_epochs()),
        first_(first_of_step),
        base_(first_of_step ? *tick_ + 1 : *tick_ - epochs_ + 1) {}

  /// Epoch of a round of dispatch.
  FERRY_FN std::uint64_t dispatch(int round) const {
    return base_ + static_cast<std::uint64_t>(round);
  }
  /// Epoch of a round of combine. A step of one round uses dispatch's epoch for both ways.
  FERRY_FN std::uint64_t combine(int round, int rounds) const {
    return rounds == 1 ? base_ : base_ + rounds_ + static_cast<std::uint64_t>(round);
  }
  /// What `done` holds after the last of `rounds` drained rounds of dispatch, and before it.
  FERRY_FN std::uint64_t drained(int round, int rounds) const {
    return round + 1 == rounds ? base_ + rounds_ - 1 : dispatch(round);
  }
  /// What `done` holds when this step needs nothing more of its source.
  FERRY_FN std::uint64_t last() const { return base_ + epochs_ - 1; }

  /// To be called once by every block, at the end of the kernel, after its last use of the clock.
  template <class Team>
  FERRY_FN void finish(Team const& t) const {
    t.block_sync();
    if (!first_ || t.index() != 0) return;
    for (int b = t.lane() * t.blocks(); b < left_; b += Team::lanes * t.blocks()) tick_[b] = last();
  }

 private:
  // A frame that names fewer leaves all launches the number that they have.
  template <class Team>
  FERRY_FN static int most_blocks(Team const& t, step_frame const& frame) {
    return frame.shape.most_blocks > t.blocks() ? frame.shape.most_blocks : t.blocks();
  }

  std::uint64_t* tick_;
  int left_;  ///< counters from this block's own on
  std::uint64_t rounds_;
  std::uint64_t epochs_;
  bool first_;
  std::uint64_t base_;
};

/// Reads a flag word of this rank's own window that another rank writes.
template <class Net>
FERRY_FN std::uint64_t const* own_word(Net const& net, std::size_t offset) {
  return reinterpret_cast<std::uint64_t const*>(net.own_flags() + offset);
}

template <class Team>
FERRY_FN void count(Team const& t, step_frame const& frame, tally what, std::uint64_t n) {
  if (n) t.fetch_add(frame.memory.tallies + static_cast<int>(what), n);
}

}  // namespace ferry
