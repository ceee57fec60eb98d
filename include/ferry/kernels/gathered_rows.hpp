// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The forms in which a token's rows are summed at home: one after the other, or several at once in
/// registers. Both add in the same order, so the bits are the same.
#pragma once

#include <ferry/kernels/columns.hpp>
#include <ferry/kernels/pieces.hpp>
#include <ferry/kernels/route.hpp>
#include <ferry/kernels/step.hpp>

namespace ferry {

/// Where sums go, and the rows that are added to them.
struct gathered_output {
  std::byte* data = nullptr;  ///< [T, hidden] of `type`
  std::int64_t stride = 0;    ///< bytes
  std::byte const* added = nullptr;
  std::int64_t added_stride = 0;
  dtype type = dtype::bf16;
};

/// Takes every type and format, and rows at any address.
template <team Team>
class memory_gather {
 public:
  /// A token's own routing (R7).
  struct sources {
    FERRY_FN sources(Team const&, step_frame const& frame, int token)
        : route(routing_of(frame, token)) {}
    /// Calls f(rank) for each rank that serves the token, until one call says no.
    template <class F>
    FERRY_FN bool wait_for_each(Team const& t, F const& f) const {
      for (int d = route.next_rank(-1); d >= 0; d = route.next_rank(d))
        if (t.any(!f(d))) return false;
      return true;
    }
    routing route;
  };

  FERRY_FN memory_gather(step_frame const& frame, gathered_output const& to)
      : frame_(frame), to_(to) {}
  FERRY_FN int parts() const { return 1; }

  FERRY_FN void gather(Team const& t, std::byte const* own, sources const& from, int in_round,
                       int token, int) const {
    routing const& route = from.route;
    visit_float_type(to_.type, [&]<class T>(T) FERRY_INLINED {
      for_each_tile(t, frame_.shape.hidden, [&](int column, int n) FERRY_INLINED {
        float sum[Team::columns] = {};
        auto const add = [&](int number, float weight) FERRY_INLINED {
          std::size_t const row = home_row(frame_, number, in_round);
          add_wire(frame_.shape.returned, own + frame_.at(slot_field::returned, row),
                   own + frame_.at(slot_field::returned_scales, row), column, n, weight, sum);
        };
        if (frame_.shape.per_choice) {
          for (int k = 0; k < frame_.shape.topk; ++k)
            if (route.choices[k] >= 0) add(k, route.weights[k]);
        } else {
          for (int d = route.next_rank(-1); d >= 0; d = route.next_rank(d)) add(d, 1.0f);
        }
        if (to_.added)
          add_row_columns<T>(to_.added + token * to_.added_stride, column, n, 1.0f, sum);
        store_columns<T>(to_.data + token * to_.stride, column, n, sum);
      });
    });
  }

 private:
  step_frame const& frame_;
  gathered_output to_;
};

/// bf16 rows to a bf16 output, in registers: a lane loads its part of several rows before it adds
/// the first. Rows, strides and what is added are multiples of 16 bytes.
template <team Team>
class bf16_gather {
 public:
  static constexpr int held_pieces = 2;  ///< of each row
  static constexpr int held_rows = 8;

  /// A token's own routing (R7), a choice on each lane.
  struct sources {
    FERRY_FN sources(Team const& t, step_frame const& frame, int token)
        : route(t, frame, token), choices(route.choices(t)), ranks(frame.shape.ranks) {}
    /// Each lane asks for its own ranks.
    template <class F>
    FERRY_FN bool wait_for_each(Team const& t, F const& f) const {
      bool ok = true;
      for (int d = t.lane(); d < ranks && ok; d += Team::lanes)
        if (route.ranks.has(d)) ok = f(d);
      bool const all = !t.any(!ok);
      t.sync();
      return all;
    }
    lane_route<Team> route;
    number_set choices;
    int ranks;
  };

  FERRY_FN bf16_gather(step_frame const& frame, gathered_output const& to)
      : frame_(frame), to_(to) {}
  FERRY_FN int parts() const { return row_part::count<Team, held_pieces>(pieces()); }

  FERRY_FN void gather(Team const& t, std::byte const* own, sources const& from, int in_round,
                       int token, int part) const {
    row_part const which = row_part::of<Team, held_pieces>(part, pieces());
    float sum[held_pieces][8] = {};
    number_set left = frame_.shape.per_choice ? from.choices : from.route.ranks;
    while (!left.empty()) add_some(t, own, from, in_round, which, left, sum);
    if (to_.added) {
      piece v[held_pieces];
      load_part(t, which, to_.added + token * to_.added_stride, v);
      FERRY_UNROLL
      for (int j = 0; j < held_pieces; ++j) add_bf16(1.0f, v[j], sum[j]);
    }
    std::byte* const row = to_.data + token * to_.stride;
    FERRY_UNROLL
    for (int j = 0; j < held_pieces; ++j)
      if (which.has(t, j))
        t.store_piece(row + 16 * static_cast<std::uint32_t>(which.piece_of(t, j)),
                      pack_bf16(sum[j]));
  }

 private:
  FERRY_FN int pieces() const { return static_cast<int>(frame_.shape.home_bytes / sizeof(piece)); }

  // Takes up to held_rows rows from `left` and adds them in order.
  FERRY_FN void add_some(Team const& t, std::byte const* own, sources const& from, int in_round,
                         row_part which, number_set& left, float (&sum)[held_pieces][8]) const {
    piece v[held_rows][held_pieces];
    float weights[held_rows];
    number_set const all = left;
    FERRY_UNROLL
    for (int i = 0; i < held_rows; ++i) {
      if (left.empty()) continue;
      int const number = left.first();
      std::size_t const row = home_row(frame_, number, in_round);
      weights[i] = frame_.shape.per_choice ? t.broadcast(from.route.weight, number) : 1.0f;
      load_part(t, which, own + frame_.at(slot_field::returned, row), v[i]);
      left.drop_first();
    }
    number_set held = all;
    FERRY_UNROLL
    for (int i = 0; i < held_rows; ++i) {
      if (held.empty()) continue;
      FERRY_UNROLL
      for (int j = 0; j < held_pieces; ++j) add_bf16(weights[i], v[i][j], sum[j]);
      held.drop_first();
    }
  }

  step_frame const& frame_;
  gathered_output to_;
};

}  // namespace ferry
