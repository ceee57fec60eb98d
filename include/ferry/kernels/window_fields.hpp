// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What lies in a window: the one field list of a microbatch slot, and of what all slots share.
///
/// A window has two parts in one space of offsets. First the flags: every word that somebody waits
/// for, and what a rank says of itself. Then the rows: all that flags cover. A device may keep the
/// two in memories of different kinds (flags where nothing is cached); then each part has a base of
/// its own, chosen so that base + offset is right for the offsets of that part.
#pragma once

#include <ferry/exec/flag.hpp>
#include <ferry/kernels/shape.hpp>
#include <ferry/memory/layout.hpp>

namespace ferry {

/// The flag words of one slot. "s" is the rank that writes, in every rank's window.
enum class flag_field {
  arrived,  ///< [s]: line of flags: the header word, then a word per chunk
  back,     ///< [s], in the same line: the done word, then a word per chunk
  count_
};
using flag_layout = field_layout<flag_field>;

/// What the flags of one slot cover. "s" is the rank that writes, in every rank's window.
enum class slot_field {
  rows,             ///< inbox [s][token of the round]: row in wire format
  returned,         ///< per_rank: [s][token]; per_choice: [token][choice]: row in the format home
  scales,           ///< inbox [s][token]: its scales
  routes,           ///< inbox [s][token]: topk local expert ids (-1: not here), topk f32 weights
  returned_scales,  ///< as `returned`: its scales
  counts,           ///< [s]: rows of the whole step for each local expert
  count_
};
using slot_layout = field_layout<slot_field>;

/// Flags of different writers never share a line of this many bytes.
inline constexpr std::size_t flag_line = 64;
/// Rows and records start at multiples of this, so that lanes move 16 bytes at a time.
inline constexpr std::size_t row_align = 16;
/// Where a slot's rows start, and the rows of a window: the longest line that a device caches.
inline constexpr std::size_t part_align = 128;

FERRY_FN constexpr std::size_t route_bytes(int topk) {
  return static_cast<std::size_t>(topk) * 8;
}

/// Where the flags of one slot lie, from their start.
constexpr flag_layout lay_out_flags(exchange_shape const& shape) {
  auto const words = 1 + static_cast<std::size_t>(shape.round_chunks());
  flag_layout flags;
  flags.add(flag_field::arrived, static_cast<std::size_t>(shape.ranks),
            round_up(2 * 8 * words, flag_line), flag_line);
  flags.add_within(flag_field::back, flag_field::arrived, 8 * words);
  return flags;
}

/// Where the rows of one slot, and all that goes with them, lie, from their start.
constexpr slot_layout lay_out_slot(exchange_shape const& shape) {
  auto const ranks = static_cast<std::size_t>(shape.ranks);
  auto const tokens = static_cast<std::size_t>(shape.round_tokens);
  auto const home_rows =
      shape.per_choice ? tokens * static_cast<std::size_t>(shape.topk) : ranks * tokens;
  slot_layout slot;
  slot.add(slot_field::rows, ranks * tokens, round_up(shape.row_bytes, row_align), part_align);
  slot.add(slot_field::returned, home_rows, round_up(shape.home_bytes, row_align), part_align);
  slot.add(slot_field::scales, ranks * tokens, round_up(shape.scale_bytes, std::size_t{4}),
           row_align);
  slot.add(slot_field::routes, ranks * tokens, route_bytes(shape.topk), row_align);
  slot.add(slot_field::returned_scales, home_rows, round_up(shape.home_scale_bytes, std::size_t{4}),
           row_align);
  slot.add(slot_field::counts, ranks, 4 * static_cast<std::size_t>(shape.most_local_experts()),
           row_align);
  return slot;
}

/// The fields of a whole window.
enum class window_field {
  status,       ///< this rank's failure record; peers only read it
  asleep,       ///< [writing rank]: threads of this rank that sleep on its words
  flags,        ///< [slot]: lay_out_flags
  relay_flags,  ///< [slot]: lay_out_relay_flags; nothing where records take one hop
  rows,         ///< [slot]: lay_out_slot
  relay_rows,   ///< [slot]: lay_out_relay; likewise
  count_
};
using window_layout = field_layout<window_field>;

/// What a slot's relay adds to the two parts of a window (relay_fields.hpp).
struct relay_bytes {
  std::size_t flags = 0;
  std::size_t rows = 0;
};

constexpr window_layout lay_out_window(exchange_shape const& shape, int num_slots,
                                       relay_bytes const& relay = {}) {
  auto const slots = static_cast<std::size_t>(num_slots);
  window_layout window;
  window.add(window_field::status, 1, sizeof(status_record), part_align);
  window.add(window_field::asleep, static_cast<std::size_t>(shape.ranks), 4, part_align);
  window.add(window_field::flags, slots, lay_out_flags(shape).bytes(), part_align);
  window.add(window_field::relay_flags, slots, relay.flags, part_align);
  window.add(window_field::rows, slots, round_up(lay_out_slot(shape).bytes(), part_align),
             part_align);
  window.add(window_field::relay_rows, slots, round_up(relay.rows, part_align), part_align);
  return window;
}

/// Bytes of the part that holds the flags: the part of the rows starts there.
constexpr std::size_t flag_bytes_of(window_layout const& window) {
  return window.offset(window_field::rows);
}

}  // namespace ferry
