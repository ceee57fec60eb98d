// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The choices of a chunk's tokens, as the lanes of a team share them.
#pragma once

#include <ferry/exec/team.hpp>
#include <ferry/kernels/shape.hpp>

#include <bit>

namespace ferry {

/// Calls f(token of the chunk, choice, whether the map has the token) for the choices of a chunk
/// in (token, choice) order, as many at once as the team has lanes; each lane gets one of them.
/// Every lane makes the same number of calls.
template <team Team, class F>
FERRY_FN void for_each_choice(Team const& t, int topk, std::uint32_t map, F const& f) {
  int const choices = topk < Team::lanes ? topk : Team::lanes;
  int const tokens = Team::lanes / choices;
  int const token_of_lane = t.lane() / choices, k = t.lane() - token_of_lane * choices;
  // From one token of the map to the next; tokens between are left out where a team takes one.
  for (std::uint32_t left = map; left != 0;) {
    int const first = std::countr_zero(left);
    int const i = first + token_of_lane;
    bool const in_map = token_of_lane < tokens && i < max_chunk_tokens && (left >> i & 1) != 0;
    for (int from = 0; from < topk; from += choices) f(i, from + k, in_map && from + k < topk);
    left &= first + tokens < max_chunk_tokens ? ~std::uint32_t{0} << (first + tokens) : 0u;
  }
}

/// Those of the lanes whose number is lower.
template <class Mask>
FERRY_FN Mask lanes_below(int lane) {
  return static_cast<Mask>((Mask{1} << lane) - 1);
}

/// The next position of expert e for each lane that names one (not -1), lower lanes first.
template <team Team>
FERRY_FN std::int64_t next_positions(Team const& t, int e, std::int64_t* cursors) {
  using mask = typename Team::mask;
  std::int64_t position = 0;
  mask waiting = t.ballot(e >= 0);
  while (waiting != 0) {
    int const expert = t.broadcast(e, std::countr_zero(waiting));
    mask const same = t.ballot(e == expert);
    std::int64_t const cursor = cursors[expert];
    t.sync();
    if (e == expert)
      position = cursor + std::popcount(static_cast<mask>(same & lanes_below<mask>(t.lane())));
    if (t.leader()) cursors[expert] = cursor + std::popcount(same);
    t.sync();
    waiting = static_cast<mask>(waiting & ~same);
  }
  return position;
}

}  // namespace ferry
