// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a window holds beside its slots where records take two hops: the one field list of what a
/// relay is sent, in dispatch by sources of other nodes and in combine by the ranks of its own.
#pragma once

#include <ferry/kernels/window_fields.hpp>

namespace ferry {

/// How many a relay serves; the most over all ranks, so that windows are laid out alike. None where
/// every rank is reached in one hop.
struct relay_shape {
  int sources = 0;  ///< W: sources of other nodes that send to one relay
  int members = 0;  ///< S: ranks of a node

  FERRY_FN constexpr bool empty() const { return sources == 0; }
};

/// The flag words of one slot. "i" is a source that the relay serves, "j" a rank of its node.
enum class relay_flag_field {
  arrived,  ///< [i]: line of flags, written by the source: the header word, then a word per chunk
  back,     ///< [i, j]: line of flags, written by rank j: the done word, then a word per chunk
  count_
};
using relay_flag_layout = field_layout<relay_flag_field>;

/// What the flags cover.
enum class relay_field {
  rows,             ///< [i][token]: row in wire format
  returned,         ///< per_rank: [i][j][token]; per_choice: [i][token][choice]: row home
  scales,           ///< [i][token]: scales, as a receiver of OCP codes takes them
  routes,           ///< [i][token]: topk experts of the group (-1: not on this node), topk weights
  returned_scales,  ///< as `returned`
  counts,           ///< [i][j]: rows of the whole step for each expert of rank j
  count_
};
using relay_layout = field_layout<relay_field>;

/// Where the flags of one slot's relay lie, from their start.
constexpr relay_flag_layout lay_out_relay_flags(exchange_shape const& shape,
                                                relay_shape const& relay) {
  auto const sources = static_cast<std::size_t>(relay.sources);
  auto const members = static_cast<std::size_t>(relay.members);
  std::size_t const line =
      round_up(8 * (1 + static_cast<std::size_t>(shape.round_chunks())), flag_line);
  relay_flag_layout flags;
  flags.add(relay_flag_field::arrived, sources, line, flag_line);
  flags.add(relay_flag_field::back, sources * members, line, flag_line);
  return flags;
}

/// Where all that they cover lies, from its start.
constexpr relay_layout lay_out_relay(exchange_shape const& shape, relay_shape const& relay) {
  auto const sources = static_cast<std::size_t>(relay.sources);
  auto const members = static_cast<std::size_t>(relay.members);
  std::size_t const records = sources * static_cast<std::size_t>(shape.round_tokens);
  std::size_t const home_rows =
      records * (shape.per_choice ? static_cast<std::size_t>(shape.topk) : members);
  relay_layout l;
  l.add(relay_field::rows, records, round_up(shape.row_bytes, row_align), part_align);
  l.add(relay_field::returned, home_rows, round_up(shape.home_bytes, row_align), part_align);
  l.add(relay_field::scales, records, round_up(shape.scale_bytes, std::size_t{4}), row_align);
  l.add(relay_field::routes, records, route_bytes(shape.topk), row_align);
  l.add(relay_field::returned_scales, home_rows, round_up(shape.home_scale_bytes, std::size_t{4}),
        row_align);
  l.add(relay_field::counts, sources * members,
        4 * static_cast<std::size_t>(shape.most_local_experts()), row_align);
  return l;
}

/// What both add to a window.
constexpr relay_bytes relay_bytes_of(exchange_shape const& shape, relay_shape const& relay) {
  if (relay.empty()) return {};
  return {lay_out_relay_flags(shape, relay).bytes(), lay_out_relay(shape, relay).bytes()};
}

}  // namespace ferry
