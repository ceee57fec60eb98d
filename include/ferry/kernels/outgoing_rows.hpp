// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The forms in which rows go out in dispatch: through memory, or through registers.
///
/// A form reads all that a part of a token's record is made of when it is made, routing included;
/// after that it only stores. A lane's stores to one rank then wait for nothing that the rank
/// before acknowledges, and no load stands between a chunk's first store and its drain.
#pragma once

#include <ferry/kernels/columns.hpp>
#include <ferry/kernels/route.hpp>
#include <ferry/kernels/step.hpp>
#include <ferry/transport/delivery.hpp>

namespace ferry {

/// What a step's tokens are, as the caller gave them.
struct token_rows {
  std::byte const* data = nullptr;  ///< [T, hidden] of `type`, or opaque bytes
  std::int64_t stride = 0;          ///< bytes
  dtype type = dtype::bf16;
  std::byte const* scales = nullptr;  ///< opaque rows: [T, scale_bytes]
  std::int64_t scale_stride = 0;      ///< bytes
};

/// Rows through memory: from where they lie, if they are in wire format there, else converted into
/// the team's scratch. Takes every type and format, and rows at any address.
template <team Team>
class memory_rows {
 public:
  static constexpr bool waits_for_stores = false;
  FERRY_FN static constexpr int parts(step_frame const&) { return 1; }
  FERRY_FN static std::uint64_t fnuz_ranks(Team const&, step_frame const&) { return 0; }

  FERRY_FN memory_rows(Team const& t, step_frame const& frame, token_rows const& tokens, int token,
                       int, std::uint64_t)
      : frame_(frame),
        route_(routing_of(frame, token)),
        receives_fnuz_(frame.memory.receives_fnuz) {
    if (route_.next_rank(-1) >= 0) row_ = wire_row(t, tokens, token);
  }

  /// Calls f(rank) for each rank that serves a choice: ascending, but starting after this rank, or
  /// every source would load the same link at first.
  template <class F>
  FERRY_FN void for_each_rank(Team const&, F const& f) const {
    int const self = frame_.shape.rank;
    for (int pass = 0; pass < 2; ++pass) {
      int d = pass == 0 ? self : -1;
      while ((d = route_.next_rank(d)) >= 0 && (pass == 0 || d <= self)) f(d);
    }
  }

  template <delivery<Team> Net>
  FERRY_FN void put(Team const& t, Net const& net, int d, int in_round) const {
    exchange_shape const& shape = frame_.shape;
    std::byte const* row = row_.row;
    std::byte const* scales = row_.scales;
    if (shape.scale_bytes && takes_other(d)) {
      scales += round_up(shape.scale_bytes, row_align);
      if (shape.sends_both()) row += scratch_for_other_row(shape);
    }
    net.put(t, d, frame_.at(slot_field::rows, shape.rank, in_round), row, shape.row_bytes);
    if (shape.scale_bytes)
      net.put(t, d, frame_.at(slot_field::scales, shape.rank, in_round), scales, shape.scale_bytes);
    put_route(t, net, d, in_round);
  }

 private:
  // Whether rank d takes the second set of scales, and the second row where there are two.
  FERRY_FN bool takes_other(int d) const {
    bool const fnuz = receives_fnuz_[d] != std::byte{0};
    if (frame_.shape.sent == wire::fp8_ue8m0) return fnuz;
    return frame_.shape.sends_both() && e4m3_wire(fnuz) != frame_.shape.sent;
  }

  FERRY_FN row_place wire_row(Team const& t, token_rows const& tokens, int token) const {
    exchange_shape const& shape = frame_.shape;
    std::byte const* const from = tokens.data + token * tokens.stride;
    if (shape.sent == wire::opaque)
      return {const_cast<std::byte*>(from),
              tokens.scales ? const_cast<std::byte*>(tokens.scales + token * tokens.scale_stride)
                            : nullptr,
              nullptr};
    if (element_of(shape.sent) == tokens.type)
      return {const_cast<std::byte*>(from), nullptr, nullptr};
    std::byte* const to = t.row_scratch();
    std::byte* const to_scales = to + round_up(shape.row_bytes, row_align);
    row_place const place{to, to_scales, to_scales + round_up(shape.scale_bytes, row_align)};
    bool own = true, other = false;
    if (shape.sends_both()) {
      own = false;
      for (int d = route_.next_rank(-1); d >= 0; d = route_.next_rank(d))
        (takes_other(d) ? other : own) = true;
    }
    // For the other flavour a row comes out of the cache. Both turns run the same code, which is
    // long: a loop for each type and format.
    for (int turn = 0; turn < 2; ++turn) {
      if (!(turn == 0 ? own : other)) continue;
      wire const format = turn == 0 ? shape.sent : e4m3_wire(shape.sent == wire::fp8_e4m3);
      // One base for all: of a choice between addresses no compiler knows the kind of memory.
      row_place const in{to + (turn == 0 ? 0 : scratch_for_other_row(shape)),
                         place.scales + (turn == 0 ? 0 : round_up(shape.scale_bytes, row_align)),
                         place.fnuz_scales};
      visit_float_type(tokens.type, [&]<class T>(T) FERRY_INLINED {
        for_each_tile(t, shape.hidden, [&](int column, int n) FERRY_INLINED {
          float v[Team::columns];
          load_columns<T>(from, column, n, v);
          store_wire(t, format, in, column, n, v);
        });
      });
    }
    t.sync();
    return place;
  }

  // The choices in d's own numbering, then the weights.
  template <delivery<Team> Net>
  FERRY_FN void put_route(Team const& t, Net const& net, int d, int in_round) const {
    int const first = frame_.shape.first_expert(d);
    auto* const words =
        reinterpret_cast<std::int32_t*>(t.row_scratch() + scratch_for_route(frame_.shape));
    auto* const weights = reinterpret_cast<float*>(words + frame_.shape.topk);
    t.sync();
    for (int k = t.lane(); k < frame_.shape.topk; k += Team::lanes) {
      words[k] = route_.rank(k) == d ? route_.choices[k] - first : not_here;
      weights[k] = route_.weights[k];
    }
    t.sync();
    net.put(t, d, frame_.at(slot_field::routes, frame_.shape.rank, in_round),
            reinterpret_cast<std::byte const*>(words), route_bytes(frame_.shape.topk));
  }

  step_frame const& frame_;
  routing route_;
  std::byte const* receives_fnuz_;
  row_place row_{};
};

}  // namespace ferry
