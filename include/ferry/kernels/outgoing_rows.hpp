// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The forms in which rows go out in dispatch: through memory, or through registers.
///
/// A form reads all that a part of a token's record is made of when it is made, routing included;
/// after that it only stores. A lane's stores to one rank then wait for nothing that the rank
/// before acknowledges, and no load stands between a chunk's first store and its drain.
#pragma once

#include <ferry/kernels/columns.hpp>
#include <ferry/kernels/pieces.hpp>
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
    net.put(t, d, frame_.at(slot_field::rows, shape.rank, in_round), row_.row, shape.row_bytes);
    if (shape.scale_bytes) {
      bool const doubled = shape.sent == wire::fp8_ue8m0 && receives_fnuz_[d] != std::byte{0};
      net.put(t, d, frame_.at(slot_field::scales, shape.rank, in_round),
              row_.scales + (doubled ? round_up(shape.scale_bytes, row_align) : 0),
              shape.scale_bytes);
    }
    put_route(t, net, d, in_round);
  }

  /// Where a team's scratch holds the route: behind a row and two sets of scales.
  FERRY_FN static constexpr std::size_t scratch_for_route(exchange_shape const& shape) {
    return round_up(shape.row_bytes, row_align) + 2 * round_up(shape.scale_bytes, row_align);
  }

 private:
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
    visit_float_type(tokens.type, [&]<class T>(T) FERRY_INLINED {
      for_each_tile(t, shape.hidden, [&](int column, int n) FERRY_INLINED {
        float v[Team::columns];
        load_columns<T>(from, column, n, v);
        store_wire(t, shape.sent, place, column, n, v);
      });
    });
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

/// bf16 rows quantised on their way, with scales of `Format` (columns.hpp). Rows and their stride
/// are multiples of 16 bytes, rows of whole scale blocks.
///
/// A lane quantises the 16 elements that make a piece of codes, so eight neighbouring lanes share a
/// block. Of the scales of its parts' blocks each of the eight keeps another one: a single store
/// then carries all of them.
template <template <class> class Format, team Team>
class quantised_rows : public routed_rows<Team> {
 public:
  static constexpr int lanes_of_block = scale_block / static_cast<int>(sizeof(piece));
  static_assert(Team::row_pieces <= lanes_of_block && Team::lanes % lanes_of_block == 0);
  using format = Format<typename Team::codes>;

  FERRY_FN static int pieces(step_frame const& frame) {
    return frame.shape.hidden / static_cast<int>(sizeof(piece));
  }
  FERRY_FN static int parts(step_frame const& frame) {
    return row_part::count<Team, Team::row_pieces>(pieces(frame));
  }
  /// The ranks whose scales differ; asked once for a whole kernel.
  FERRY_FN static std::uint64_t fnuz_ranks(Team const& t, step_frame const& frame) {
    std::uint64_t ranks = 0;
    if constexpr (format::differs_by_flavour)
      for (int first = 0; first < frame.shape.ranks; first += Team::lanes) {
        int const r = first + t.lane();
        bool const fnuz = r < frame.shape.ranks && frame.memory.receives_fnuz[r] != std::byte{0};
        ranks |= static_cast<std::uint64_t>(t.ballot(fnuz)) << first;
      }
    return ranks;
  }

  FERRY_FN quantised_rows(Team const& t, step_frame const& frame, token_rows const& tokens,
                          int token, int part, std::uint64_t fnuz)
      : routed_rows<Team>(t, frame, token),
        part_(row_part::of<Team, Team::row_pieces>(part, pieces(frame))),
        fnuz_(fnuz) {
    std::byte const* const from = tokens.data + token * tokens.stride;
    piece x[Team::row_pieces][2];
    FERRY_UNROLL
    for (int j = 0; j < Team::row_pieces; ++j) {
      int const p = part_.piece_of(t, j), last = part_.pieces - 1;
      std::byte const* const at = from + 32 * static_cast<std::uint32_t>(p < last ? p : last);
      x[j][0] = t.load_piece(at);
      x[j][1] = t.load_piece(at + 16);
    }
    FERRY_UNROLL
    for (int j = 0; j < Team::row_pieces; ++j) {
      typename format::scale const s = format::scale_of(
          t.template max_over<lanes_of_block>(largest_bf16<format>(x[j][0], x[j][1])));
      if (t.lane() % lanes_of_block == j) scale_ = s;
      FERRY_UNROLL
      for (int h = 0; h < 2; ++h) {
        float v[8];
        unpack_bf16(x[j][h], v);
        row_[j].word[2 * h] = format::codes(v[0], v[1], v[2], v[3], s);
        row_[j].word[2 * h + 1] = format::codes(v[4], v[5], v[6], v[7], s);
      }
    }
  }

  template <delivery<Team> Net>
  FERRY_FN void put(Team const& t, Net const& net, int d, int in_round) const {
    step_frame const& frame = this->frame_;
    int const source = frame.shape.rank;
    put_part(t, net, part_, d, frame.at(slot_field::rows, source, in_round), row_);
    int const j = t.lane() % lanes_of_block;
    int const p = part_.first + j * Team::lanes + t.lane() / lanes_of_block * lanes_of_block;
    if (j < Team::row_pieces && p < part_.pieces) {
      auto const block = static_cast<std::uint32_t>(p / lanes_of_block);
      auto const bits = format::bits(scale_, (fnuz_ >> d & 1) != 0);
      net.put_value(t, d, frame.at(slot_field::scales, source, in_round), sizeof bits * block,
                    bits);
    }
    if (part_.first == 0) this->put_route(t, net, d, in_round);
  }

 private:
  row_part part_;
  std::uint64_t fnuz_;
  piece row_[Team::row_pieces];
  typename format::scale scale_{};
};

}  // namespace ferry
