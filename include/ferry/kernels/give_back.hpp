// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The sending half of combine: the experts' rows go home.
#pragma once

#include <ferry/kernels/returning_rows.hpp>
#include <ferry/kernels/step.hpp>
#include <ferry/transport/delivery.hpp>

#include <bit>
#include <cstdint>

namespace ferry {

/// Returns to each source what the local experts made of its tokens: one weighted sum per token
/// (per_rank), or every expert's row at its choice's place (per_choice), then the chunk's word.
///
/// `done` goes out first: what this kernel still needs of the step lies in private memory. With
/// `credit_only` it is all that goes out (release).
struct return_rows {
  step_frame frame;
  std::byte const* rows = nullptr;  ///< [positions, hidden] of `type`
  std::int64_t row_stride = 0;      ///< bytes
  dtype type = dtype::bf16;
  int round = 0;
  bool credit_only = false;
  /// per_rank: `rows` are [R, M], each token's experts' rows weighted and summed by the caller.
  bool summed = false;

  /// Rows go through memory.
  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    run<memory_sums>(t, net);
  }

  /// Rows go home in one of the forms of returning_rows.hpp, which row_forms.hpp chooses from.
  template <template <class> class Sums, team Team, delivery<Team> Net>
  FERRY_FN void run(Team const& t, Net const& net) const {
    int const rounds = *frame.memory.rounds;
    if (round >= rounds) return;
    step_clock const clock(t, frame, phase::give_back, round == 0);
    if (credit_only) {
      publish_done(t, net, clock.last());
    } else {
      std::uint64_t const epoch = clock.combine(round, rounds);
      if (rounds > 1 && !wait_for_room(t, net, epoch)) return;
      publish_done(t, net, round + 1 == rounds ? clock.last() : epoch);
      return_chunks<Sums<Team>>(t, net, epoch);
    }
    clock.finish(t);
  }

 private:
  // In rounds the returned array is used again: its owner says by a header that it has been read.
  template <team Team, delivery<Team> Net>
  FERRY_FN bool wait_for_room(Team const& t, Net const& net, std::uint64_t epoch) const {
    bool ok = true;
    for (int s = t.lane(); s < frame.shape.ranks && ok; s += Team::lanes) {
      std::uint64_t seen;
      ok = t.wait({flag::header, s, -1, epoch},
                  own_word(net, frame.line_head(flag_field::arrived, s)), seen);
    }
    return t.block_all(ok);
  }

  // R6: to every source, also to one that sent nothing.
  template <team Team, delivery<Team> Net>
  FERRY_FN void publish_done(Team const& t, Net const& net, std::uint64_t epoch) const {
    if (t.block() != 0 || t.index() != 0 || t.failed()) return;
    net.release(t);
    for (int s = t.lane(); s < frame.shape.ranks; s += Team::lanes)
      net.publish(t, s, flag::done, frame.line_head(flag_field::back, frame.shape.rank), epoch);
  }

  template <class Sums, team Team, delivery<Team> Net>
  FERRY_FN void return_chunks(Team const& t, Net const& net, std::uint64_t epoch) const {
    Sums const sums(frame, {rows, row_stride, type});
    int const parts = sums.parts();
    std::uint64_t others = 0, self = 0;
    std::int64_t const items = std::int64_t{frame.shape.ranks} * frame.shape.round_chunks();
    for (std::int64_t i = t.block(); i < items; i += t.blocks()) {
      auto const [source, chunk] = returning_item_of(i, frame.shape.rank, frame.shape.ranks);
      int const tokens = frame.tokens_in_round(frame.memory.seen_tokens[source], round);
      if (chunk * frame.shape.chunk_tokens >= tokens) continue;
      std::uint32_t const map = frame.memory.maps[frame.map_index(source, round, chunk)];
      if (!map) continue;
      if (!t.block_all(!t.failed())) break;
      std::uint64_t bytes = 0;
      int turn = 0;
      for (std::uint32_t left = map; left; left &= left - 1) {
        int const token = chunk * frame.shape.chunk_tokens + std::countr_zero(left);
        for (int part = 0; part < parts; ++part) {
          if (turn++ % t.count() != t.index()) continue;
          bytes += return_part(t, net, sums, {source, token, part});
          if constexpr (Sums::waits_for_stores) t.drain();
        }
      }
      (source == frame.shape.rank ? self : others) += bytes;
      t.drain();
      t.block_sync();
      if (t.index() == 0) {
        net.release(t);
        if (t.lane() == source % Team::lanes)
          net.publish(t, source, flag::back,
                      frame.chunk_flag(flag_field::back, frame.shape.rank, chunk), epoch);
      }
    }
    if (t.leader()) {
      count(t, frame, tally::returned_bytes, others);
      count(t, frame, tally::returned_self_bytes, self);
    }
  }

  struct returned_part {
    int source;
    int token;
    int part;
  };

  // Returns the bytes of the rows that it began.
  template <class Sums, team Team, delivery<Team> Net>
  FERRY_FN std::uint64_t return_part(Team const& t, Net const& net, Sums const& sums,
                                     returned_part which) const {
    exchange_shape const& shape = frame.shape;
    typename Sums::planned plan(
        t, frame, frame.planned(which.source, round * shape.round_tokens + which.token));
    if constexpr (Sums::takes_token_sums)
      if (summed && !shape.per_choice)
        plan.sum = which.source * shape.max_tokens + round * shape.round_tokens + which.token;
    std::uint64_t const bytes = which.part == 0 ? shape.home_bytes + shape.home_scale_bytes : 0;
    std::uint64_t sent = 0;
    int const end = shape.per_choice ? shape.topk : all_choices + 1;
    for (int k = shape.per_choice ? 0 : all_choices; k < end; ++k) {
      if (k != all_choices && !plan.is_here(t, k)) continue;
      // Before the next row is read.
      if constexpr (Sums::waits_for_stores) t.drain();
      sums.put(t, net, plan, k, which.part, which.source,
               home_row(frame, shape.per_choice ? k : shape.rank, which.token));
      sent += bytes;
    }
    return sent;
  }
};

}  // namespace ferry
