// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Rows that go out through registers and are quantised there.
#pragma once

#include <ferry/kernels/copied_rows.hpp>

#include <type_traits>

namespace ferry {

/// Neighbouring lanes that share a block: each quantises the 16 elements that make a piece of
/// codes.
inline constexpr int lanes_of_block = scale_block / static_cast<int>(sizeof(piece));

/// A part's codes of `Format` (columns.hpp) in a lane's registers. Of the scales of its parts'
/// blocks each lane of a block keeps another one: a single store then carries all of them.
template <class Format, team Team>
struct quantised_part {
  piece row[Team::row_pieces];
  typename Format::scale scale{};

  /// Quantises piece j of the part. `largest`: of its block.
  FERRY_FN void take(Team const& t, int j, piece const (&x)[2], float largest) {
    typename Format::scale const s = Format::scale_of(largest);
    if (t.lane() % lanes_of_block == j) scale = s;
    FERRY_UNROLL
    for (int h = 0; h < 2; ++h) {
      float v[8];
      unpack_bf16(x[h], v);
      row[j].word[2 * h] = Format::codes(v[0], v[1], v[2], v[3], s);
      row[j].word[2 * h + 1] = Format::codes(v[4], v[5], v[6], v[7], s);
    }
  }

  /// This part, or `other` where `take_other` says so. Bit by bit: of a choice between two places
  /// compilers make an address, and registers have none.
  template <class OtherFormat>
  FERRY_FN quantised_part or_else(quantised_part<OtherFormat, Team> const& other,
                                  bool take_other) const {
    std::uint32_t const mask = 0u - static_cast<std::uint32_t>(take_other);
    quantised_part chosen;
    FERRY_UNROLL
    for (int j = 0; j < Team::row_pieces; ++j) {
      FERRY_UNROLL
      for (int i = 0; i < 4; ++i)
        chosen.row[j].word[i] = select(mask, other.row[j].word[i], row[j].word[i]);
    }
    chosen.scale = float_of(select(mask, bits_of(other.scale), bits_of(scale)));
    return chosen;
  }

  template <delivery<Team> Net>
  FERRY_FN void put(Team const& t, Net const& net, step_frame const& frame, row_part part, int d,
                    int in_round, bool fnuz) const {
    int const source = frame.shape.rank;
    put_part(t, net, part, d, frame.at(slot_field::rows, source, in_round), row);
    int const j = t.lane() % lanes_of_block;
    int const p = part.first + j * Team::lanes + t.lane() / lanes_of_block * lanes_of_block;
    if (j < Team::row_pieces && p < part.pieces) {
      auto const block = static_cast<std::uint32_t>(p / lanes_of_block);
      auto const bits = Format::bits(scale, fnuz);
      net.put_value(t, d, frame.at(slot_field::scales, source, in_round), sizeof bits * block,
                    bits);
    }
  }
};

/// bf16 rows quantised on their way, with scales of `Format` (columns.hpp). Rows and their stride
/// are multiples of 16 bytes, rows of whole scale blocks.
///
/// Where FNUZ receivers take another format, a part is quantised twice from the same registers.
template <template <class> class Format, team Team, template <class> class FnuzFormat = Format>
class quantised_rows : public routed_rows<Team> {
 public:
  static_assert(Team::row_pieces <= lanes_of_block && Team::lanes % lanes_of_block == 0);
  using format = Format<typename Team::codes>;
  using fnuz_format = FnuzFormat<typename Team::codes>;
  static constexpr bool makes_both = !std::is_same_v<format, fnuz_format>;

  FERRY_FN static int pieces(step_frame const& frame) {
    return frame.shape.hidden / static_cast<int>(sizeof(piece));
  }
  FERRY_FN static int parts(step_frame const& frame) {
    return row_part::count<Team, Team::row_pieces>(pieces(frame));
  }
  /// The ranks for which rows or scales differ; asked once for a whole kernel.
  FERRY_FN static std::uint64_t fnuz_ranks(Team const& t, step_frame const& frame) {
    std::uint64_t ranks = 0;
    if constexpr (format::differs_by_flavour || makes_both)
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
      float const largest =
          t.template max_over<lanes_of_block>(largest_bf16<format>(x[j][0], x[j][1]));
      row_.take(t, j, x[j], largest);
      if constexpr (makes_both) fnuz_row_.take(t, j, x[j], largest);
    }
  }

  template <delivery<Team> Net>
  FERRY_FN void put(Team const& t, Net const& net, int d, int in_round) const {
    bool const fnuz = (fnuz_ >> d & 1) != 0;
    if constexpr (makes_both)
      row_.or_else(fnuz_row_, fnuz).put(t, net, this->frame_, part_, d, in_round, fnuz);
    else
      row_.put(t, net, this->frame_, part_, d, in_round, fnuz);
    if (part_.first == 0) this->put_route(t, net, d, in_round);
  }

 private:
  struct nothing {};

  row_part part_;
  std::uint64_t fnuz_;
  quantised_part<format, Team> row_;
  [[no_unique_address]] std::conditional_t<makes_both, quantised_part<fnuz_format, Team>, nothing>
      fnuz_row_;
};

}  // namespace ferry
