// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Copying a row with all lanes of a team.
#pragma once

#include <ferry/exec/team.hpp>

#include <cstddef>
#include <cstring>

namespace ferry {

/// Copies `bytes` bytes; the ranges do not overlap, any alignment. Every lane of the team calls it.
template <team Team>
FERRY_FN void copy_row(Team const& t, std::byte* to, std::byte const* from, std::size_t bytes) {
  if constexpr (requires { t.copy(to, from, bytes); }) {
    t.copy(to, from, bytes);
  } else if constexpr (Team::lanes == 1) {
    std::memcpy(to, from, bytes);
  } else {
    using chunk = typename Team::chunk;
    std::size_t const whole = bytes / sizeof(chunk);
    bool const aligned = (reinterpret_cast<std::size_t>(to) | reinterpret_cast<std::size_t>(from)) %
                             alignof(chunk) ==
                         0;
    std::size_t const vectors = aligned ? whole : 0;
    for (std::size_t i = static_cast<std::size_t>(t.lane()); i < vectors; i += Team::lanes)
      reinterpret_cast<chunk*>(to)[i] = reinterpret_cast<chunk const*>(from)[i];
    for (std::size_t i = vectors * sizeof(chunk) + static_cast<std::size_t>(t.lane()); i < bytes;
         i += Team::lanes)
      to[i] = from[i];
  }
}

}  // namespace ferry
