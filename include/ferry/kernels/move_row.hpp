// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Copying rows and scales within the memory of a rank.
#pragma once

#include <ferry/exec/team.hpp>
#include <ferry/kernels/window_fields.hpp>
#include <ferry/transport/copy_row.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

/// Pieces that a lane loads before it stores the first of them.
inline constexpr int moved_pieces = 4;

/// Copies a row of `bytes` bytes between places that both start at a multiple of row_align and have
/// room up to the next one: many lanes copy whole pieces. Every lane of the team calls it.
template <team Team>
FERRY_FN void move_row(Team const& t, std::byte* to, std::byte const* from, std::size_t bytes) {
  if constexpr (Team::lanes == 1) {
    copy_row(t, to, from, bytes);
  } else {
    auto const pieces = static_cast<int>(ceil_div(bytes, row_align));
    for (int first = t.lane(); first < pieces; first += moved_pieces * Team::lanes) {
      piece v[moved_pieces];
      FERRY_UNROLL
      for (int j = 0; j < moved_pieces; ++j) {
        int const p = first + j * Team::lanes;
        v[j] = t.load_piece(from + 16 * static_cast<std::uint32_t>(p < pieces ? p : first));
      }
      FERRY_UNROLL
      for (int j = 0; j < moved_pieces; ++j) {
        int const p = first + j * Team::lanes;
        if (p < pieces) t.store_piece(to + 16 * static_cast<std::uint32_t>(p), v[j]);
      }
    }
  }
}

/// The same for scales, whose places start at a multiple of 4 bytes.
template <team Team>
FERRY_FN void move_scales(Team const& t, std::byte* to, std::byte const* from, std::size_t bytes) {
  if constexpr (Team::lanes == 1) {
    copy_row(t, to, from, bytes);
  } else {
    auto const words = static_cast<int>(ceil_div(bytes, std::size_t{4}));
    for (int i = t.lane(); i < words; i += Team::lanes)
      reinterpret_cast<std::uint32_t*>(to)[i] = reinterpret_cast<std::uint32_t const*>(from)[i];
  }
}

}  // namespace ferry
