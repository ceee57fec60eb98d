// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The receiving half of dispatch.
#pragma once

#include <ferry/kernels/chunk_choices.hpp>
#include <ferry/kernels/expert_groups.hpp>
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
    if (round == 0 && t.block() == 0) write_groups(t, net, frame, layer);
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
      for_each_group(t, net, frame, source,
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
    for_each_choice(t, frame.shape.topk, map, [&](int i, int k, bool there) FERRY_INLINED {
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

  template <team Team, class Net>
  FERRY_FN void lay_out_chunk(Team const& t, Net const& net, int source, int chunk,
                              std::uint32_t map) const {
    std::int32_t const* const plan = frame.memory.plan;  // as in plan_chunk
    laid_out const to{net.own_rows(), frame.memory.index, frame.memory.rows, frame.memory.scales};
    int const first_token = chunk * frame.shape.chunk_tokens;
    int turn = 0;
    for_each_choice(t, frame.shape.topk, map, [&](int i, int k, bool there) FERRY_INLINED {
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

}  // namespace ferry
