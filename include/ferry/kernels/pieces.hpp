// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A part of a row in a lane's registers, in pieces of 16 bytes.
///
/// A team works through a row in parts of `N * Team::lanes` pieces, so that rows of any length take
/// a bounded number of registers: lane l holds the pieces first + l, first + lanes + l, ... of a
/// part. All of a part is read before any of it is stored; rows longer than a part are several
/// items of work, which different teams may take.
#pragma once

#include <ferry/base/number_formats.hpp>
#include <ferry/exec/team.hpp>
#include <ferry/transport/delivery.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

/// Which pieces of a row of `pieces` pieces belong to a part.
struct row_part {
  int first = 0;   ///< of lane 0
  int pieces = 0;  ///< of the whole row

  /// How many parts a row has.
  template <team Team, int N>
  FERRY_FN static constexpr int count(int pieces) {
    return ceil_div(pieces, N * Team::lanes);
  }
  template <team Team, int N>
  FERRY_FN static row_part of(int part, int pieces) {
    return {part * N * Team::lanes, pieces};
  }
  template <team Team>
  FERRY_FN int piece_of(Team const& t, int j) const {
    return first + j * Team::lanes + t.lane();
  }
  template <team Team>
  FERRY_FN bool has(Team const& t, int j) const {
    return piece_of(t, j) < pieces;
  }
};

/// Loads a part of the row at `row`. Lanes beyond its end load its last piece again: a load that
/// all lanes make needs no branch.
template <team Team, int N>
FERRY_FN void load_part(Team const& t, row_part part, std::byte const* row, piece (&v)[N]) {
  FERRY_UNROLL
  for (int j = 0; j < N; ++j) {
    int const p = part.piece_of(t, j);
    int const last = part.pieces - 1;
    v[j] = t.load_piece(row + 16 * static_cast<std::uint32_t>(p < last ? p : last));
  }
}

/// Stores a part to the row at `offset` in the window of `to`.
template <team Team, delivery<Team> Net, int N>
FERRY_FN void put_part(Team const& t, Net const& net, row_part part, int to, std::size_t offset,
                       piece const (&v)[N]) {
  FERRY_UNROLL
  for (int j = 0; j < N; ++j)
    if (part.has(t, j))
      net.put_value(t, to, offset, 16 * static_cast<std::uint32_t>(part.piece_of(t, j)), v[j]);
}

/// Eight bf16 as f32, in the order of memory.
FERRY_FN void unpack_bf16(piece const& from, float (&to)[8]) {
  FERRY_UNROLL
  for (int i = 0; i < 4; ++i) {
    to[2 * i] = float_of(from.word[i] << 16);
    to[2 * i + 1] = float_of(from.word[i] & 0xFFFF'0000u);
  }
}
FERRY_FN piece pack_bf16(float const (&from)[8]) {
  piece to;
  FERRY_UNROLL
  for (int i = 0; i < 4; ++i)
    to.word[i] = static_cast<std::uint32_t>(from_float<bf16>(from[2 * i]).bits) |
                 static_cast<std::uint32_t>(from_float<bf16>(from[2 * i + 1]).bits) << 16;
  return to;
}

/// sum += weight * v, each element in one rounding.
FERRY_FN void add_bf16(float weight, piece const& v, float (&sum)[8]) {
  float x[8];
  unpack_bf16(v, x);
  FERRY_UNROLL
  for (int i = 0; i < 8; ++i) sum[i] = __builtin_fmaf(weight, x[i], sum[i]);
}

/// The largest of 16 bf16, of what `Format` counts (columns.hpp).
template <class Format>
FERRY_FN float largest_bf16(piece const& a, piece const& b) {
  std::uint32_t largest = 0;
  FERRY_UNROLL
  for (int i = 0; i < 4; ++i) {
    std::uint32_t const words[2] = {a.word[i], b.word[i]};
    FERRY_UNROLL
    for (int h = 0; h < 2; ++h) {
      std::uint32_t const low = Format::counted(words[h] << 16 & ~f32_sign);
      std::uint32_t const high = Format::counted(words[h] & 0x7FFF'0000u);
      largest = low > largest ? low : largest;
      largest = high > largest ? high : largest;
    }
  }
  return float_of(largest);
}

}  // namespace ferry
