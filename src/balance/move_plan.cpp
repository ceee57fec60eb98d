// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "balance/move_plan.hpp"

#include <ferry/balance/migrate.hpp>

#include "base/fail.hpp"

#include <algorithm>
#include <tuple>

namespace ferry {

placement keep_slots(placement const& from, placement to) {
  for (int l = 0; l < to.num_layers; ++l)
    for (int r = 0; r < to.num_ranks; ++r) {
      auto const first = static_cast<std::size_t>(to.first_slot(r));
      auto const count = static_cast<std::size_t>(to.slots_of(r));
      auto const was = from.layer(l).subspan(first, count);
      auto const is = to.layer(l).subspan(first, count);
      std::vector<std::int32_t> coming;  // in the target's order
      for (auto const e : is)
        if (std::find(was.begin(), was.end(), e) == was.end()) coming.push_back(e);
      std::vector<std::int32_t> kept(is.begin(), is.end());
      auto next = coming.begin();
      for (std::size_t s = 0; s < count; ++s)
        is[s] = std::find(kept.begin(), kept.end(), was[s]) != kept.end() ? was[s] : *next++;
    }
  return to;
}

namespace {

/// Moves of one layer.
std::vector<expert_move> moves_of_layer(placement const& from, placement const& to, int layer,
                                        std::vector<int>& sent) {
  std::vector<expert_move> moves;
  auto const was = from.layer(layer), is = to.layer(layer);
  for (int s = 0; s < to.num_slots; ++s) {
    auto const expert = is[static_cast<std::size_t>(s)];
    if (was[static_cast<std::size_t>(s)] == expert) continue;
    expert_move best{.layer = layer, .expert = expert, .to_slot = s, .to_rank = to.rank_of(s)};
    std::tuple<bool, int, int> least{true, 0, -1};
    for (int f = 0; f < from.num_slots; ++f) {
      if (was[static_cast<std::size_t>(f)] != expert) continue;
      int const rank = from.rank_of(f);
      std::tuple const key(from.node_of(rank) != to.node_of(best.to_rank),
                           sent[static_cast<std::size_t>(rank)], f);
      if (std::get<2>(least) >= 0 && least <= key) continue;
      least = key;
      best.from_slot = f;
      best.from_rank = rank;
    }
    ++sent[static_cast<std::size_t>(best.from_rank)];
    moves.push_back(best);
  }
  return moves;
}

}  // namespace

result<std::vector<move_round>> plan_moves(placement const& from, placement const& to,
                                           int spare_slots) {
  auto const ranks = static_cast<std::size_t>(to.num_ranks);
  std::vector<move_round> rounds;
  std::vector<int> sent(ranks), taken(ranks);
  for (int layer = 0; layer < to.num_layers; ++layer) {
    std::vector<expert_move> moves = moves_of_layer(from, to, layer, sent);
    if (moves.empty()) continue;
    std::vector<int> coming(ranks);
    for (expert_move const& m : moves) ++coming[static_cast<std::size_t>(m.to_rank)];
    bool fits = !rounds.empty();
    for (std::size_t r = 0; r < ranks; ++r) {
      if (coming[r] > spare_slots)
        return fail(error_code::capacity,
                    "layer {}: rank {} would receive {} experts, but there are {} spare slots",
                    layer, r, coming[r], spare_slots);
      fits = fits && taken[r] + coming[r] <= spare_slots;
    }
    if (!fits) {
      rounds.emplace_back();
      std::fill(taken.begin(), taken.end(), 0);
    }
    rounds.back().layers.push_back(layer);
    for (expert_move& m : moves) {
      m.spare = taken[static_cast<std::size_t>(m.to_rank)]++;
      rounds.back().moves.push_back(m);
    }
  }
  return rounds;
}

}  // namespace ferry
