// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rows that go out through registers: what such forms share, and the one that copies.
#pragma once

#include <ferry/kernels/outgoing_rows.hpp>
#include <ferry/kernels/pieces.hpp>
#include <ferry/kernels/route.hpp>

namespace ferry {

/// What every form in registers shares: the route, a choice on each lane.
template <team Team>
class routed_rows {
 public:
  static constexpr bool waits_for_stores = true;

  /// Calls f(rank) for each rank that serves a choice, starting at another one in each block and
  /// team, or all would load the same link at first.
  template <class F>
  FERRY_FN void for_each_rank(Team const& t, F const& f) const {
    int const ranks = frame_.shape.ranks;
    int const start =
        static_cast<int>(static_cast<std::uint32_t>(frame_.shape.rank + 1 + t.block() + t.index()) %
                         static_cast<std::uint32_t>(ranks));
    number_set left = route_.ranks.from(start), then = route_.ranks.below(start);
    for (;;) {
      if (left.empty()) {
        left = then;
        then = {};
      }
      if (left.empty()) return;
      f(left.first());
      left.drop_first();
    }
  }

 protected:
  FERRY_FN routed_rows(Team const& t, step_frame const& frame, int token)
      : frame_(frame), route_(t, frame, token) {}

  template <delivery<Team> Net>
  FERRY_FN void put_route(Team const& t, Net const& net, int d, int in_round) const {
    std::size_t const offset = frame_.at(slot_field::routes, frame_.shape.rank, in_round);
    auto const topk = static_cast<std::uint32_t>(frame_.shape.topk);
    auto const k = static_cast<std::uint32_t>(t.lane());
    if (k >= topk) return;
    net.put_value(t, d, offset, 4 * k,
                  static_cast<std::uint32_t>(route_.rank == d ? route_.local : not_here));
    net.put_value(t, d, offset, 4 * (topk + k), bits_of(route_.weight));
  }

  step_frame const& frame_;
  lane_route<Team> route_;
};

/// Rows that are in wire format where they lie. Rows, their stride and length are multiples of 16
/// bytes; scales, if there are any, of 4.
template <team Team>
class copied_rows : public routed_rows<Team> {
 public:
  /// Words of scales that a lane holds.
  static constexpr int scale_words = 4;

  FERRY_FN static int pieces(step_frame const& frame) {
    return static_cast<int>(frame.shape.row_bytes / sizeof(piece));
  }
  FERRY_FN static int parts(step_frame const& frame) {
    return row_part::count<Team, Team::row_pieces>(pieces(frame));
  }
  FERRY_FN static std::uint64_t fnuz_ranks(Team const&, step_frame const&) { return 0; }

  FERRY_FN copied_rows(Team const& t, step_frame const& frame, token_rows const& tokens, int token,
                       int part, std::uint64_t)
      : routed_rows<Team>(t, frame, token),
        part_(row_part::of<Team, Team::row_pieces>(part, pieces(frame))) {
    load_part(t, part_, tokens.data + token * tokens.stride, row_);
    if (part == 0 && frame.shape.scale_bytes) {
      auto const* const from =
          reinterpret_cast<std::uint32_t const*>(tokens.scales + token * tokens.scale_stride);
      auto const last = static_cast<std::uint32_t>(frame.shape.scale_bytes / 4 - 1);
      FERRY_UNROLL
      for (int i = 0; i < scale_words; ++i) {
        auto const word = static_cast<std::uint32_t>(i * Team::lanes + t.lane());
        scales_[i] = from[word < last ? word : last];
      }
    }
  }

  template <delivery<Team> Net>
  FERRY_FN void put(Team const& t, Net const& net, int d, int in_round) const {
    step_frame const& frame = this->frame_;
    int const source = frame.shape.rank;
    put_part(t, net, part_, d, frame.at(slot_field::rows, source, in_round), row_);
    if (part_.first != 0) return;
    std::size_t const offset = frame.at(slot_field::scales, source, in_round);
    auto const words = static_cast<std::uint32_t>(frame.shape.scale_bytes / 4);
    FERRY_UNROLL
    for (int i = 0; i < scale_words; ++i) {
      auto const word = static_cast<std::uint32_t>(i * Team::lanes + t.lane());
      if (word < words) net.put_value(t, d, offset, 4 * word, scales_[i]);
    }
    this->put_route(t, net, d, in_round);
  }

 private:
  row_part part_;
  piece row_[Team::row_pieces];
  std::uint32_t scales_[scale_words] = {};
};

}  // namespace ferry
