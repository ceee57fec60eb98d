// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/placement.hpp>

#include "base/fail.hpp"

#include <algorithm>

namespace ferry {
namespace {

result<void> check_shape(placement const& where) {
  if (where.num_layers < 1 || where.num_experts < 1 || where.num_ranks < 1 || where.num_nodes < 1)
    return fail(error_code::invalid_argument,
                "a placement of {} layers, {} experts, {} ranks and {} nodes; at least 1 of each",
                where.num_layers, where.num_experts, where.num_ranks, where.num_nodes);
  if (where.num_nodes > where.num_ranks)
    return fail(error_code::invalid_argument, "{} nodes of {} ranks: some would have none",
                where.num_nodes, where.num_ranks);
  if (where.num_slots < where.num_experts)
    return fail(error_code::invalid_argument, "{} slots cannot hold {} experts", where.num_slots,
                where.num_experts);
  auto const wanted =
      static_cast<std::size_t>(where.num_layers) * static_cast<std::size_t>(where.num_slots);
  if (where.experts.size() != wanted)
    return fail(error_code::invalid_argument, "{} entries, but {} layers of {} slots make {}",
                where.experts.size(), where.num_layers, where.num_slots, wanted);
  return {};
}

result<void> check_layer(placement const& where, int l) {
  // The last rank that was seen with an expert: ranks come in order.
  std::vector<int> seen_on(static_cast<std::size_t>(where.num_experts), -1);
  for (int s = 0; s < where.num_slots; ++s) {
    auto const e = where.layer(l)[static_cast<std::size_t>(s)];
    if (e < 0 || e >= where.num_experts)
      return fail(error_code::invalid_argument, "layer {}: slot {} holds expert {}, not 0..{}", l,
                  s, e, where.num_experts - 1);
    auto& last = seen_on[static_cast<std::size_t>(e)];
    if (last == where.rank_of(s))
      return fail(error_code::invalid_argument, "layer {}: rank {} holds expert {} twice", l, last,
                  e);
    last = where.rank_of(s);
  }
  auto const missing = std::find(seen_on.begin(), seen_on.end(), -1);
  if (missing != seen_on.end())
    return fail(error_code::invalid_argument, "layer {}: no slot holds expert {}", l,
                missing - seen_on.begin());
  return {};
}

}  // namespace

result<void> validate(placement const& where) {
  FERRY_CHECK(check_shape(where));
  for (int l = 0; l < where.num_layers; ++l) FERRY_CHECK(check_layer(where, l));
  return {};
}

result<placement> contiguous_placement(int num_layers, int num_experts, int num_ranks,
                                       int num_nodes) {
  placement where{num_layers, num_experts, num_ranks, num_nodes, num_experts, {}};
  if (num_layers > 0 && num_experts > 0) {
    where.experts.resize(static_cast<std::size_t>(num_layers) *
                         static_cast<std::size_t>(num_experts));
    for (std::size_t i = 0; i < where.experts.size(); ++i)
      where.experts[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(num_experts));
  }
  FERRY_CHECK(validate(where));
  return where;
}

result<std::int64_t> moved_experts(placement const& from, placement const& to) {
  if (from.num_layers != to.num_layers || from.num_experts != to.num_experts ||
      from.num_ranks != to.num_ranks)
    return fail(error_code::invalid_argument,
                "from {} layers, {} experts and {} ranks one cannot move to {}, {} and {}",
                from.num_layers, from.num_experts, from.num_ranks, to.num_layers, to.num_experts,
                to.num_ranks);
  std::int64_t moved = 0;
  std::vector<char> held(static_cast<std::size_t>(to.num_experts));
  for (int l = 0; l < to.num_layers; ++l)
    for (int r = 0; r < to.num_ranks; ++r) {
      std::fill(held.begin(), held.end(), 0);
      for (int s = from.first_slot(r); s < from.first_slot(r + 1); ++s)
        held[static_cast<std::size_t>(from.layer(l)[static_cast<std::size_t>(s)])] = 1;
      for (int s = to.first_slot(r); s < to.first_slot(r + 1); ++s)
        moved += held[static_cast<std::size_t>(to.layer(l)[static_cast<std::size_t>(s)])] == 0;
    }
  return moved;
}

}  // namespace ferry
