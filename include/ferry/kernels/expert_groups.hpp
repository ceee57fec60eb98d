// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Where the rows of each local expert stand, which the sources' counts say before a row is there.
#pragma once

#include <ferry/kernels/step.hpp>
#include <ferry/transport/delivery.hpp>

#include <bit>

namespace ferry {

/// How many rows each local expert gets from `source` in this step; it says so with its header.
template <class Net>
FERRY_FN std::int32_t const* counts_of(Net const& net, step_frame const& frame, int source) {
  return reinterpret_cast<std::int32_t const*>(
      net.own_rows() + frame.at(slot_field::counts, static_cast<std::size_t>(source)));
}

/// Calls f(expert, there, start, rows before `source`, rows) for each local expert, an expert on
/// each lane, by the same arithmetic on every block: where its group starts, and how many rows it
/// gets from the sources before `source` and from all. `there` is false on lanes past the last
/// expert.
template <team Team, class Net, class F>
FERRY_FN void for_each_group(Team const& t, Net const& net, step_frame const& frame, int source,
                             F const& f) {
  int const experts = frame.shape.local_experts(frame.shape.rank);
  std::int64_t first_start = 0;
  for (int first = 0; first < experts; first += Team::lanes) {
    int const e = first + t.lane();
    bool const there = e < experts;
    std::int64_t before = 0, rows = 0;
    if (there)
      for (int s = 0; s < frame.shape.ranks; ++s) {
        std::int32_t const n = counts_of(net, frame, s)[e];
        rows += n;
        before += s < source ? n : 0;
      }
    std::int64_t const room = !there ? 0
                              : frame.layout.per_expert
                                  ? frame.layout.per_expert
                                  : round_up(rows, std::int64_t{frame.layout.align});
    std::int64_t const up_to = t.sum_to(room);
    f(e, there, first_start + up_to - room, before, rows);
    first_start += t.broadcast(up_to, Team::lanes - 1);
  }
}
/// The first position past the room of the group that starts at `start`.
FERRY_FN std::int64_t limit_of(step_frame const& frame, std::int64_t start) {
  return frame.layout.per_expert ? start + frame.layout.per_expert : frame.layout.capacity;
}

/// Writes where the groups start and how many rows they get, cut to their room, by a block's first
/// team; all its lanes call. Adds the rows to the loads of `layer`, where they are counted.
template <team Team, class Net>
FERRY_FN void write_groups(Team const& t, Net const& net, step_frame const& frame, int layer) {
  if (t.index() != 0) return;
  // Not read through what the lambda captures: see receive_rows::plan_chunk.
  std::int32_t* const starts = frame.memory.starts;
  std::int32_t* const counts = frame.memory.counts;
  std::int32_t* const wanted = frame.memory.wanted;
  std::uint64_t* const loads = frame.placed.loads;
  int const first_load = layer * frame.shape.most_local_experts();
  std::int64_t end = 0;
  std::int64_t received = 0, too_many = 0;
  for_each_group(
      t, net, frame, 0,
      [&](int e, bool there, std::int64_t start, std::int64_t, std::int64_t rows) FERRY_INLINED {
        std::int64_t const room = limit_of(frame, start) - start;
        std::int64_t const fit = rows < room ? rows : room < 0 ? 0 : room;
        if (there) {
          starts[e] = static_cast<std::int32_t>(
              start < frame.layout.capacity ? start : frame.layout.capacity);
          counts[e] = static_cast<std::int32_t>(fit);
          wanted[e] = static_cast<std::int32_t>(rows < INT32_MAX ? rows : INT32_MAX);
          if (loads && rows) t.fetch_add(loads + first_load + e, static_cast<std::uint64_t>(rows));
          received += rows;
          too_many += rows - fit;
        }
        // Groups ascend: the last one that has rows ends last.
        auto const with_rows = static_cast<std::uint64_t>(t.ballot(there && fit > 0));
        if (with_rows) end = t.broadcast(start + fit, std::bit_width(with_rows) - 1);
      });
  received = t.sum_to(received);
  too_many = t.sum_to(too_many);
  if (t.lane() == Team::lanes - 1) {
    count(t, frame, tally::rows_received, static_cast<std::uint64_t>(received));
    count(t, frame, tally::rows_without_room, static_cast<std::uint64_t>(too_many));
  }
  if (t.leader()) *frame.memory.end = static_cast<std::int32_t>(end);
}

}  // namespace ferry
