// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What lies in a window: the one field list of a microbatch slot, and of what all slots share.
#pragma once

#include <ferry/exec/cpu/waiter.hpp>
#include <ferry/kernels/shape.hpp>
#include <ferry/memory/layout.hpp>

namespace ferry {

/// The fields of one slot. "s" is the rank that writes, in every rank's window.
enum class slot_field {
  rows,      ///< inbox [s][token of the round]: row in wire format
  scales,    ///< inbox [s][token]: its scales
  routes,    ///< inbox [s][token]: topk local expert ids (-1: not here), topk f32 weights
  arrived,   ///< [s]: line of flags: the header word, then a word per chunk
  returned,  ///< per_rank: [s][token]; per_choice: [token][choice]: row in the wire format home
  returned_scales,  ///< likewise: its scales
  back,             ///< [s], in the same line: the done word, then a word per chunk
  counts,           ///< [s], in the same line: rows of the whole step for each local expert
  count_
};
using slot_layout = field_layout<slot_field>;

/// Flags of different writers never share a line of this many bytes.
inline constexpr std::size_t flag_line = 128;
/// Rows and records start at multiples of this, so that lanes move 16 bytes at a time.
inline constexpr std::size_t row_align = 16;

FERRY_FN constexpr std::size_t route_bytes(int topk) {
  return static_cast<std::size_t>(topk) * 8;
}

/// Where everything of one slot lies, from the slot's start.
constexpr slot_layout lay_out_slot(exchange_shape const& shape) {
  auto const ranks = static_cast<std::size_t>(shape.ranks);
  auto const tokens = static_cast<std::size_t>(shape.round_tokens);
  auto const words = 1 + static_cast<std::size_t>(shape.round_chunks());
  auto const home_rows =
      shape.per_choice ? tokens * static_cast<std::size_t>(shape.topk) : ranks * tokens;
  slot_layout slot;
  slot.add(slot_field::rows, ranks * tokens, round_up(shape.row_bytes, row_align), flag_line);
  slot.add(slot_field::scales, ranks * tokens, round_up(shape.scale_bytes, std::size_t{4}),
           row_align);
  slot.add(slot_field::routes, ranks * tokens, route_bytes(shape.topk), row_align);
  slot.add(slot_field::returned, home_rows, round_up(shape.home_bytes, row_align), flag_line);
  slot.add(slot_field::returned_scales, home_rows, round_up(shape.home_scale_bytes, std::size_t{4}),
           row_align);
  std::size_t const counts = 4 * static_cast<std::size_t>(shape.most_local_experts());
  slot.add(slot_field::arrived, ranks, round_up(2 * 8 * words + counts, flag_line), flag_line);
  slot.add_within(slot_field::back, slot_field::arrived, 8 * words);
  slot.add_within(slot_field::counts, slot_field::arrived, 2 * 8 * words);
  return slot;
}

/// The fields of a whole window.
enum class window_field {
  status,  ///< this rank's failure record; peers only read it
  asleep,  ///< [writing rank]: threads of this rank that sleep on its words
  slots,   ///< [slot]: lay_out_slot
  count_
};
using window_layout = field_layout<window_field>;

constexpr window_layout lay_out_window(exchange_shape const& shape, int num_slots) {
  window_layout window;
  window.add(window_field::status, 1, round_up(sizeof(status_record), flag_line), flag_line);
  window.add(window_field::asleep, static_cast<std::size_t>(shape.ranks), 4, flag_line);
  window.add(window_field::slots, static_cast<std::size_t>(num_slots),
             round_up(lay_out_slot(shape).bytes(), flag_line), flag_line);
  return window;
}

}  // namespace ferry
