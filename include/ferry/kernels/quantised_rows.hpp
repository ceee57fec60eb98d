// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rows that go out through registers and are quantised there.
#pragma once

#include <ferry/kernels/copied_rows.hpp>

namespace ferry {

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
