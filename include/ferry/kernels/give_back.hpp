// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The sending half of combine: the experts' rows go home.
#pragma once

#include <ferry/kernels/columns.hpp>
#include <ferry/kernels/send.hpp>
#include <ferry/kernels/step.hpp>
#include <ferry/transport/delivery.hpp>

#include <bit>

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

  template <team Team, delivery<Team> Net>
  FERRY_FN void operator()(Team const& t, Net const& net) const {
    int const rounds = *frame.memory.rounds;
    if (round >= rounds) return;
    step_clock const clock(t, frame, phase::give_back, round == 0);
    if (credit_only) {
      publish_done(t, net, clock.last());
    } else {
      std::uint64_t const epoch = clock.combine(round, rounds);
      if (rounds > 1 && !wait_for_room(t, net, epoch)) return;
      publish_done(t, net, round + 1 == rounds ? clock.last() : epoch);
      return_chunks(t, net, epoch);
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
                  own_word(net, frame.line_head(slot_field::arrived, s)), seen);
    }
    return t.block_all(ok);
  }

  // R6: to every source, also to one that sent nothing.
  template <team Team, delivery<Team> Net>
  FERRY_FN void publish_done(Team const& t, Net const& net, std::uint64_t epoch) const {
    if (t.block() != 0 || t.index() != 0 || t.failed()) return;
    for (int s = t.lane(); s < frame.shape.ranks; s += Team::lanes)
      net.publish(t, s, flag::done, frame.line_head(slot_field::back, frame.shape.rank), epoch);
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void return_chunks(Team const& t, Net const& net, std::uint64_t epoch) const {
    std::uint64_t others = 0, self = 0;
    std::int64_t const items = std::int64_t{frame.shape.ranks} * frame.shape.round_chunks();
    for (std::int64_t i = t.block(); i < items && !t.failed(); i += t.blocks()) {
      auto const [source, chunk] = returning_item_of(i, frame.shape.rank, frame.shape.ranks);
      int const tokens = frame.tokens_in_round(frame.memory.seen_tokens[source], round);
      if (chunk * frame.shape.chunk_tokens >= tokens) continue;
      std::uint32_t const map = frame.memory.maps[frame.map_index(source, round, chunk)];
      if (!map) continue;
      int turn = 0;
      for (std::uint32_t left = map; left; left &= left - 1) {
        if (turn++ % t.count() != t.index()) continue;
        int const token = chunk * frame.shape.chunk_tokens + std::countr_zero(left);
        std::uint64_t const bytes = return_token(t, net, source, token);
        (source == frame.shape.rank ? self : others) += bytes;
      }
      t.drain();
      t.block_sync();
      if (t.index() == 0 && t.leader())
        net.publish(t, source, flag::back,
                    frame.chunk_flag(slot_field::back, frame.shape.rank, chunk), epoch);
    }
    if (t.leader()) {
      count(t, frame, tally::returned_bytes, others);
      count(t, frame, tally::returned_self_bytes, self);
    }
  }

  // Returns the bytes that it sent.
  template <team Team, delivery<Team> Net>
  FERRY_FN std::uint64_t return_token(Team const& t, Net const& net, int source, int token) const {
    exchange_shape const& shape = frame.shape;
    std::size_t const at = frame.planned(source, round * shape.round_tokens + token);
    std::int32_t const* const plan = frame.memory.plan + at;
    float const* const weights = frame.memory.plan_weights + at;
    std::uint64_t const bytes = shape.home_bytes + shape.home_scale_bytes;
    if (!shape.per_choice) {
      if (summed) return return_sum(t, net, source, token);
      make_row(t, plan, weights, shape.topk);
      put_row(t, net, source,
              static_cast<std::size_t>(shape.rank) * static_cast<std::size_t>(shape.round_tokens) +
                  static_cast<std::size_t>(token));
      return bytes;
    }
    std::uint64_t sent = 0;
    for (int k = 0; k < shape.topk; ++k) {
      if (plan[k] == not_here) continue;
      float const one = 1.0f;
      make_row(t, plan + k, &one, 1);
      put_row(t, net, source,
              static_cast<std::size_t>(token) * static_cast<std::size_t>(shape.topk) +
                  static_cast<std::size_t>(k));
      sent += bytes;
    }
    return sent;
  }

  // A row that is a sum already travels from where it lies, unless it has to be converted.
  template <team Team, delivery<Team> Net>
  FERRY_FN std::uint64_t return_sum(Team const& t, Net const& net, int source, int token) const {
    exchange_shape const& shape = frame.shape;
    std::int32_t const row =
        static_cast<std::int32_t>(source * shape.max_tokens + round * shape.round_tokens + token);
    std::size_t const item =
        static_cast<std::size_t>(shape.rank) * static_cast<std::size_t>(shape.round_tokens) +
        static_cast<std::size_t>(token);
    if (element_of(shape.returned) == type) {
      net.put(t, source, frame.at(slot_field::returned, item), rows + row * row_stride,
              shape.home_bytes);
    } else {
      float const one = 1.0f;
      make_row(t, &row, &one, 1);
      put_row(t, net, source, item);
    }
    return shape.home_bytes + shape.home_scale_bytes;
  }

  FERRY_FN row_place place_in(std::byte* scratch) const {
    return {scratch, scratch + round_up(frame.shape.home_bytes, row_align), nullptr};
  }

  // The weighted sum of the rows at the planned positions, in choice order, in this team's scratch.
  template <team Team>
  FERRY_FN void make_row(Team const& t, std::int32_t const* plan, float const* weights,
                         int choices) const {
    row_place const to = place_in(t.row_scratch());
    t.sync();
    visit_float_type(type, [&]<class T>(T) {
      for_each_tile(t, frame.shape.hidden, [&](int column, int n) {
        float sum[Team::columns] = {};
        for (int k = 0; k < choices; ++k) {
          if (plan[k] < 0) continue;
          add_row_columns<T>(rows + plan[k] * row_stride, column, n, weights[k], sum);
        }
        store_wire(t, frame.shape.returned, to, column, n, sum);
      });
    });
    t.sync();
  }

  template <team Team, delivery<Team> Net>
  FERRY_FN void put_row(Team const& t, Net const& net, int source, std::size_t item) const {
    row_place const from = place_in(t.row_scratch());
    net.put(t, source, frame.at(slot_field::returned, item), from.row, frame.shape.home_bytes);
    if (frame.shape.home_scale_bytes)
      net.put(t, source, frame.at(slot_field::returned_scales, item), from.scales,
              frame.shape.home_scale_bytes);
  }
};

}  // namespace ferry
