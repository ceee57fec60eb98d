// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The receiving half of dispatch.
#pragma once

#include <ferry/kernels/move_row.hpp>
#include <ferry/kernels/step.hpp>
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
  int layer = 0;  ///< whose loads are counted, where they are

  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    if (round > 0 && round >= *frame.memory.rounds) return;
    step_clock const clock(t, frame, phase::receive, round == 0);
    if (!read_headers(t, net, clock.dispatch(round))) return;
    receiving_part const part = receiving_part_of(t.block(), t.blocks(), frame.shape.ranks);
    if (round == 0 && t.block() == 0) write_groups(t, net);
    for (int s = part.sources.first; s < part.sources.end; s += part.sources.step)
      if (!receive_source(t, net, s, part, clock.dispatch(round))) break;
    clock.finish(t);
  }

 private:
  // R5: a header is acquired before anything that it covers is used. The headers of round 0 say how
  // many tokens every source brings to the whole step, so all ranks agree on the number of rounds.
  template <team Team, delivery<Team> Net>
  FERRY_FN bool read_headers(Team const& t, Net const& net, std::uint64_t epoch) const {
    bool ok = true;
    int most = 0;
    if (t.index() == 0) {
      bool const keeps = round == 0 && t.block() == 0;
      for (int s = t.lane(); s < frame.shape.ranks && ok; s += Team::lanes) {
        std::uint64_t word = 0;
        ok = t.wait({flag::header, s, -1, epoch},
                    own_word(net, frame.line_head(flag_field::arrived, s)), word);
        int const tokens = tokens_in(word);
        most = tokens > most ? tokens : most;
        if (keeps) frame.memory.seen_tokens[s] = tokens;
      }
      // A count of tokens has 24 bits, which a float holds exactly.
      most = static_cast<int>(t.template max_over<Team::lanes>(static_cast<float>(most)));
      if (keeps && t.leader())
        *frame.memory.rounds = most == 0 ? 1 : ceil_div(most, frame.shape.round_tokens);
    }
    return t.block_all(ok);
  }

  FERRY_FN static int tokens_in(std::uint64_t header) {
    return static_cast<int>(header & ((1u << epoch_shift(flag::header)) - 1));
  }
  template <class Net>
  FERRY_FN int tokens_from(Net const& net, int source) const {
    if (round > 0) return frame.memory.seen_tokens[source];
    return tokens_in(*own_word(net, frame.line_head(flag_field::arrived, source)));
  }

  // Calls f(expert, start, rows before `source`, rows) for each local expert, an expert on each
  // lane, by the same arithmetic on every block: where its group starts, and how many rows it gets
  // from the sources before `source` and from all. `there` is false on lanes past the last expert.
  template <team Team, class Net, class F>
  FERRY_FN void for_each_group(Team const& t, Net const& net, int source, F const& f) const {
    int const experts = frame.shape.local_experts(frame.shape.rank);
    std::int64_t first_start = 0;
    for (int first = 0; first < experts; first += Team::lanes) {
      int const e = first + t.lane();
      bool const there = e < experts;
      std::int64_t before = 0, rows = 0;
      if (there)
        for (int s = 0; s < frame.shape.ranks; ++s) {
          std::int32_t const n = counts_of(net, s)[e];
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
  template <class Net>
  FERRY_FN std::int32_t const* counts_of(Net const& net, int source) const {
    return reinterpret_cast<std::int32_t const*>(
        net.own_rows() + frame.at(slot_field::counts, static_cast<std::size_t>(source)));
  }
  FERRY_FN std::int64_t limit_of(std::int64_t start) const {
    return frame.layout.per_expert ? start + frame.layout.per_expert : frame.layout.capacity;
  }

  template <team Team, class Net>
  FERRY_FN void write_groups(Team const& t, Net const& net) const {
    if (t.index() != 0) return;
    std::int32_t* const starts = frame.memory.starts;  // as in plan_chunk
    std::int32_t* const counts = frame.memory.counts;
    std::int32_t* const wanted = frame.memory.wanted;
    std::uint64_t* const loads = frame.placed.loads;
    int const first_load = layer * frame.shape.most_local_experts();
    std::int64_t end = 0;
    std::int64_t received = 0, too_many = 0;
    for_each_group(
        t, net, 0,
        [&](int e, bool there, std::int64_t start, std::int64_t, std::int64_t rows) FERRY_INLINED {
          std::int64_t const room = limit_of(start) - start;
          std::int64_t const fit = rows < room ? rows : room < 0 ? 0 : room;
          if (there) {
            starts[e] = static_cast<std::int32_t>(
                start < frame.layout.capacity ? start : frame.layout.capacity);
            counts[e] = static_cast<std::int32_t>(fit);
            wanted[e] = static_cast<std::int32_t>(rows < INT32_MAX ? rows : INT32_MAX);
            if (loads && rows)
              t.fetch_add(loads + first_load + e, static_cast<std::uint64_t>(rows));
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

  template <team Team>
  FERRY_FN std::int64_t* kept_cursors(Team const& t, int source) const {
    int const row = t.blocks() <= frame.shape.ranks ? source : t.block();
    return frame.memory.cursors + static_cast<std::size_t>(row) *
                                      static_cast<std::size_t>(frame.shape.most_local_experts());
  }

  // The next position of each expert's rows from this source, in memory that is near.
  template <team Team, class Net>
  FERRY_FN void set_cursors(Team const& t, Net const& net, int source,
                            std::int64_t* cursors) const {
    if (round == 0)
      for_each_group(t, net, source,
                     [&](int e, bool there, std::int64_t start, std::int64_t before, std::int64_t)
                         FERRY_INLINED {
                           if (there) cursors[e] = start + before;
                         });
    else
      copy_cursors(t, cursors, kept_cursors(t, source));
    t.sync();
  }
  template <team Team>
  FERRY_FN void copy_cursors(Team const& t, std::int64_t* to, std::int64_t const* from) const {
    for (int e = t.lane(); e < frame.shape.local_experts(frame.shape.rank); e += Team::lanes)
      to[e] = from[e];
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN bool receive_source(Team const& t, Net const& net, int source,
                               receiving_part const& part, std::uint64_t epoch) const {
    auto* const cursors = reinterpret_cast<std::int64_t*>(t.block_scratch());
    if (t.index() == 0) set_cursors(t, net, source, cursors);
    int const tokens = frame.tokens_in_round(tokens_from(net, source), round);
    int const chunks = ceil_div(tokens, frame.shape.chunk_tokens);
    for (int c = 0; c < chunks; ++c) {
      std::uint64_t word = 0;
      bool const ok = t.wait({flag::arrived, source, c, epoch},
                             own_word(net, frame.chunk_flag(flag_field::arrived, source, c)), word);
      if (!t.block_all(ok)) return false;
      auto const map = static_cast<std::uint32_t>(word & 0xFFFFu);
      bool const mine = c % part.shares == part.share;
      if (mine && t.index() == 0 && t.leader())
        frame.memory.maps[frame.map_index(source, round, c)] = static_cast<std::uint16_t>(map);
      if (t.index() == 0) plan_chunk(t, net, source, c, map, mine, cursors);
      t.block_sync();
      if (mine) lay_out_chunk(t, net, source, c, map);
    }
    if (t.index() == 0 && frame.shape.max_rounds() > 1)
      copy_cursors(t, kept_cursors(t, source), cursors);
    return t.block_all(!t.failed());
  }

  // Calls f(token of the chunk, choice, whether the map has the token) for the choices of a chunk
  // in (token, choice) order, as many at once as the team has lanes; each lane gets one of them.
  // Every lane makes the same number of calls.
  template <team Team, class F>
  FERRY_FN void for_each_choice(Team const& t, std::uint32_t map, F const& f) const {
    int const topk = frame.shape.topk;
    int const choices = topk < Team::lanes ? topk : Team::lanes;
    int const tokens = Team::lanes / choices;
    int const token_of_lane = t.lane() / choices, k = t.lane() - token_of_lane * choices;
    // From one token of the map to the next; tokens between are left out where a team takes one.
    for (std::uint32_t left = map; left != 0;) {
      int const first = std::countr_zero(left);
      int const i = first + token_of_lane;
      bool const in_map = token_of_lane < tokens && i < max_chunk_tokens && (left >> i & 1) != 0;
      for (int from = 0; from < topk; from += choices) f(i, from + k, in_map && from + k < topk);
      left &= first + tokens < max_chunk_tokens ? ~std::uint32_t{0} << (first + tokens) : 0u;
    }
  }

  // Gives every choice of the chunk that is served here its position, in (token, choice) order.
  template <team Team, class Net>
  FERRY_FN void plan_chunk(Team const& t, Net const& net, int source, int chunk, std::uint32_t map,
                           bool mine, std::int64_t* cursors) const {
    int const first_token = chunk * frame.shape.chunk_tokens;
    // Read here, not through what the lambda captures: a device's compiler follows an argument to
    // the kind of memory it points to, but not by that way.
    std::int32_t* const plan = frame.memory.plan;
    float* const plan_weights = frame.memory.plan_weights;
    std::byte const* const own = net.own_rows();
    for_each_choice(t, map, [&](int i, int k, bool there) FERRY_INLINED {
      int e = -1;
      float weight = 0.0f;
      if (there) {
        auto const* const experts = reinterpret_cast<std::int32_t const*>(
            own + frame.at(slot_field::routes, source, first_token + i));
        e = experts[k];
        weight = reinterpret_cast<float const*>(experts + frame.shape.topk)[k];
      }
      std::int64_t const next = next_positions(t, e, cursors);
      if (!there || !mine) return;
      std::int64_t const limit = frame.layout.per_expert
                                     ? (std::int64_t{e} + 1) * frame.layout.per_expert
                                     : frame.layout.capacity;
      std::size_t const at =
          frame.planned(source, round * frame.shape.round_tokens + first_token + i) +
          static_cast<std::size_t>(k);
      plan[at] = e < 0 ? not_here : next < limit ? static_cast<std::int32_t>(next) : no_room;
      plan_weights[at] = weight;
    });
  }

  // The next position of expert e for each lane that names one (not -1), lower lanes first.
  template <team Team>
  FERRY_FN std::int64_t next_positions(Team const& t, int e, std::int64_t* cursors) const {
    using mask = typename Team::mask;
    std::int64_t position = 0;
    mask waiting = t.ballot(e >= 0);
    while (waiting != 0) {
      int const expert = t.broadcast(e, std::countr_zero(waiting));
      mask const same = t.ballot(e == expert);
      std::int64_t const cursor = cursors[expert];
      t.sync();
      if (e == expert)
        position = cursor + std::popcount(static_cast<mask>(same & lanes_below<mask>(t.lane())));
      if (t.leader()) cursors[expert] = cursor + std::popcount(same);
      t.sync();
      waiting = static_cast<mask>(waiting & ~same);
    }
    return position;
  }
  template <class Mask>
  FERRY_FN static Mask lanes_below(int lane) {
    return static_cast<Mask>((Mask{1} << lane) - 1);
  }

  template <team Team, class Net>
  FERRY_FN void lay_out_chunk(Team const& t, Net const& net, int source, int chunk,
                              std::uint32_t map) const {
    std::int32_t const* const plan = frame.memory.plan;  // as in plan_chunk
    laid_out const to{net.own_rows(), frame.memory.index, frame.memory.rows, frame.memory.scales};
    int const first_token = chunk * frame.shape.chunk_tokens;
    int turn = 0;
    for_each_choice(t, map, [&](int i, int k, bool there) FERRY_INLINED {
      std::int32_t const planned =
          there ? plan[frame.planned(source, round * frame.shape.round_tokens + first_token + i) +
                       static_cast<std::size_t>(k)]
                : not_here;
      auto left = static_cast<std::uint64_t>(t.ballot(planned >= 0));
      for (; left != 0; left &= left - 1) {
        if (turn++ % t.count() != t.index()) continue;
        int const lane = std::countr_zero(left);
        lay_out_row(t, to, source, first_token + t.broadcast(i, lane), t.broadcast(planned, lane));
      }
    });
  }

  struct laid_out {
    std::byte const* window;
    std::int32_t* index;
    std::byte* rows;
    std::byte* scales;
  };
  template <team Team>
  FERRY_FN void lay_out_row(Team const& t, laid_out const& to, int source, int token,
                            std::int32_t position) const {
    if (frame.layout.in_place) {
      if (t.leader()) to.index[position] = source * frame.shape.round_tokens + token;
      return;
    }
    auto const n = static_cast<std::size_t>(position);
    move_row(t, to.rows + n * frame.memory.row_stride,
             to.window + frame.at(slot_field::rows, source, token), frame.shape.row_bytes);
    if (frame.shape.scale_bytes)
      move_scales(t, to.scales + n * frame.memory.scale_stride,
                  to.window + frame.at(slot_field::scales, source, token), frame.shape.scale_bytes);
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
