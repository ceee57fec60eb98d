// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The receiving half of dispatch.
#pragma once

#include <ferry/kernels/step.hpp>
#include <ferry/transport/copy_row.hpp>
#include <ferry/transport/delivery.hpp>

#include <bit>

namespace ferry {

/// Lays what arrives before the local experts, in (expert, source, token) order.
///
/// The headers bring the sources' counts, so every row's position is known before the rows are
/// there, and a chunk is laid out as soon as it has arrived, in any order of arrival. A block works
/// on one source at a time; blocks that share a source all read its routes, and each moves its own
/// chunks. Choices, weights and maps are copied to private memory: after this kernel, only in_place
/// experts still read the window (R6).
struct receive_rows {
  step_frame frame;
  int round = 0;

  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    if (round > 0 && round >= *frame.memory.rounds) return;
    step_clock const clock(t, frame, phase::receive, round == 0);
    if (!read_headers(t, net, clock.dispatch(round))) return;
    receiving_part const part = receiving_part_of(t.block(), t.blocks(), frame.shape.ranks);
    if (round == 0) {
      if (t.block() == 0) write_groups(t, net);
      for (int s = part.sources.first; s < part.sources.end; s += part.sources.step)
        set_cursors(t, net, s, cursors_of(t, s));
    }
    for (int s = part.sources.first; s < part.sources.end && !t.failed(); s += part.sources.step)
      receive_source(t, net, s, part, clock.dispatch(round));
    clock.finish(t);
  }

 private:
  // R5: a header is acquired before anything that it covers is used. The headers of round 0 say how
  // many tokens every source brings to the whole step, so all ranks agree on the number of rounds.
  template <team Team, delivery<Team> Net>
  FERRY_FN bool read_headers(Team const& t, Net const& net, std::uint64_t epoch) const {
    bool ok = true;
    int most = 0;
    for (int s = 0; s < frame.shape.ranks && ok; ++s) {
      std::uint64_t word = 0;
      ok = t.wait({flag::header, s, -1, epoch},
                  own_word(net, frame.line_head(flag_field::arrived, s)), word);
      int const tokens = static_cast<int>(word & ((1u << epoch_shift(flag::header)) - 1));
      most = tokens > most ? tokens : most;
      if (round == 0 && t.block() == 0 && t.index() == 0 && t.leader())
        frame.memory.seen_tokens[s] = tokens;
    }
    if (round == 0 && t.block() == 0 && t.index() == 0 && t.leader())
      *frame.memory.rounds = most == 0 ? 1 : ceil_div(most, frame.shape.round_tokens);
    return t.block_all(ok);
  }

  template <class Net>
  FERRY_FN int tokens_from(Net const& net, int source) const {
    if (round > 0) return frame.memory.seen_tokens[source];
    std::uint64_t const word = *own_word(net, frame.line_head(flag_field::arrived, source));
    return static_cast<int>(word & ((1u << epoch_shift(flag::header)) - 1));
  }

  template <class Net>
  FERRY_FN std::int32_t const* counts_of(Net const& net, int source) const {
    return reinterpret_cast<std::int32_t const*>(
        net.own_rows() + frame.at(slot_field::counts, static_cast<std::size_t>(source)));
  }

  // Where each expert's group starts, by the same arithmetic on every block.
  template <class Net>
  FERRY_FN std::int64_t rows_of_expert(Net const& net, int expert, int before_source) const {
    std::int64_t rows = 0;
    for (int s = 0; s < before_source; ++s) rows += counts_of(net, s)[expert];
    return rows;
  }
  FERRY_FN std::int64_t start_after(std::int64_t start, std::int64_t rows) const {
    return frame.layout.per_expert ? start + frame.layout.per_expert
                                   : round_up(start + rows, std::int64_t{frame.layout.align});
  }
  FERRY_FN std::int64_t limit_of(std::int64_t start) const {
    return frame.layout.per_expert ? start + frame.layout.per_expert : frame.layout.capacity;
  }

  template <team Team, class Net>
  FERRY_FN void write_groups(Team const& t, Net const& net) const {
    if (t.index() != 0 || !t.leader()) return;
    step_memory const& memory = frame.memory;
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::uint64_t received = 0, too_many = 0;
    int const experts = frame.shape.local_experts(frame.shape.rank);
    for (int e = 0; e < experts; ++e) {
      std::int64_t const rows = rows_of_expert(net, e, frame.shape.ranks);
      std::int64_t const room = limit_of(start) - start;
      std::int64_t const fit = rows < room ? rows : room < 0 ? 0 : room;
      memory.starts[e] =
          static_cast<std::int32_t>(start < frame.layout.capacity ? start : frame.layout.capacity);
      memory.counts[e] = static_cast<std::int32_t>(fit);
      memory.wanted[e] = static_cast<std::int32_t>(rows < INT32_MAX ? rows : INT32_MAX);
      if (fit > 0) end = start + fit;
      received += static_cast<std::uint64_t>(rows);
      too_many += static_cast<std::uint64_t>(rows - fit);
      start = start_after(start, rows);
    }
    *memory.end = static_cast<std::int32_t>(end);
    count(t, frame, tally::rows_received, received);
    count(t, frame, tally::rows_without_room, too_many);
  }

  template <team Team>
  FERRY_FN std::int64_t* cursors_of(Team const& t, int source) const {
    int const row = t.blocks() <= frame.shape.ranks ? source : t.block();
    return frame.memory.cursors + static_cast<std::size_t>(row) *
                                      static_cast<std::size_t>(frame.shape.most_local_experts());
  }

  // The next position of each expert's rows from this source. A cursor belongs to one lane of team
  // 0.
  template <team Team, class Net>
  FERRY_FN void set_cursors(Team const& t, Net const& net, int source,
                            std::int64_t* cursors) const {
    if (t.index() == 0) {
      std::int64_t start = 0;
      int const experts = frame.shape.local_experts(frame.shape.rank);
      for (int e = 0; e < experts; ++e) {
        std::int64_t const before = rows_of_expert(net, e, source);
        if (e % Team::lanes == t.lane()) cursors[e] = start + before;
        start = start_after(start, rows_of_expert(net, e, frame.shape.ranks));
      }
    }
    t.block_sync();
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void receive_source(Team const& t, Net const& net, int source,
                               receiving_part const& part, std::uint64_t epoch) const {
    std::int64_t* const cursors = cursors_of(t, source);
    int const tokens = frame.tokens_in_round(tokens_from(net, source), round);
    int const chunks = ceil_div(tokens, frame.shape.chunk_tokens);
    for (int c = 0; c < chunks; ++c) {
      std::uint64_t word = 0;
      bool const ok = t.wait({flag::arrived, source, c, epoch},
                             own_word(net, frame.chunk_flag(flag_field::arrived, source, c)), word);
      if (!t.block_all(ok)) return;
      auto const map = static_cast<std::uint32_t>(word & 0xFFFFu);
      bool const mine = c % part.shares == part.share;
      if (mine && t.index() == 0 && t.leader())
        frame.memory.maps[frame.map_index(source, round, c)] = static_cast<std::uint16_t>(map);
      if (t.index() == 0) plan_chunk(t, net, source, c, map, mine, cursors);
      t.block_sync();
      if (mine) lay_out_chunk(t, net, source, c, map);
    }
  }

  // Gives every choice of the chunk that is served here its position, in (token, choice) order.
  template <team Team, class Net>
  FERRY_FN void plan_chunk(Team const& t, Net const& net, int source, int chunk, std::uint32_t map,
                           bool mine, std::int64_t* cursors) const {
    int const topk = frame.shape.topk;
    for (std::uint32_t left = map; left; left &= left - 1) {
      int const token = chunk * frame.shape.chunk_tokens + std::countr_zero(left);
      std::byte const* const route = net.own_rows() + frame.at(slot_field::routes, source, token);
      auto const* const experts = reinterpret_cast<std::int32_t const*>(route);
      auto const* const weights = reinterpret_cast<float const*>(experts + topk);
      std::size_t const at = frame.planned(source, round * frame.shape.round_tokens + token);
      for (int k = 0; k < topk; ++k) {
        int const e = experts[k];
        bool const here = e >= 0;
        if ((here ? e : k) % Team::lanes != t.lane()) continue;
        std::int32_t position = not_here;
        if (here) {
          std::int64_t const next = cursors[e]++;
          std::int64_t const limit = frame.layout.per_expert
                                         ? (std::int64_t{e} + 1) * frame.layout.per_expert
                                         : frame.layout.capacity;
          position = next < limit ? static_cast<std::int32_t>(next) : no_room;
        }
        if (!mine) continue;
        frame.memory.plan[at + static_cast<std::size_t>(k)] = position;
        frame.memory.plan_weights[at + static_cast<std::size_t>(k)] = weights[k];
      }
    }
  }

  template <team Team, class Net>
  FERRY_FN void lay_out_chunk(Team const& t, Net const& net, int source, int chunk,
                              std::uint32_t map) const {
    step_memory const& memory = frame.memory;
    int turn = 0;
    for (std::uint32_t left = map; left; left &= left - 1) {
      int const token = chunk * frame.shape.chunk_tokens + std::countr_zero(left);
      std::size_t const at = frame.planned(source, round * frame.shape.round_tokens + token);
      std::byte const* const row = net.own_rows() + frame.at(slot_field::rows, source, token);
      std::byte const* const scales = net.own_rows() + frame.at(slot_field::scales, source, token);
      for (int k = 0; k < frame.shape.topk; ++k) {
        std::int32_t const position = memory.plan[at + static_cast<std::size_t>(k)];
        if (position < 0 || turn++ % t.count() != t.index()) continue;
        if (frame.layout.in_place) {
          if (t.leader()) memory.index[position] = source * frame.shape.round_tokens + token;
          continue;
        }
        auto const to = static_cast<std::size_t>(position);
        copy_row(t, memory.rows + to * memory.row_stride, row, frame.shape.row_bytes);
        if (frame.shape.scale_bytes)
          copy_row(t, memory.scales + to * memory.scale_stride, scales, frame.shape.scale_bytes);
      }
    }
  }
};

/// After a round's rows are laid out: tells every source that its inbox may be overwritten. Only
/// steps of several rounds need it; a step of one round says `done` when it returns.
struct credit_round {
  step_frame frame;
  int round = 0;

  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    int const rounds = *frame.memory.rounds;
    if (rounds == 1 || round >= rounds || t.failed()) return;
    // The step's counters have advanced already: this reads the same base as rounds after the
    // first.
    step_clock const clock(t, frame, phase::receive, false);
    if (t.block() != 0 || t.index() != 0) return;
    net.release(t);
    for (int s = t.lane(); s < frame.shape.ranks; s += Team::lanes)
      net.publish(t, s, flag::done, frame.line_head(flag_field::back, frame.shape.rank),
                  clock.drained(round, rounds));
  }
};

}  // namespace ferry
