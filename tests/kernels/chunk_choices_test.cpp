// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/chunk_choices.hpp>

#include "kernels/emulated_teams.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace {

using namespace ferry;

template <int Lanes>
void visit_choices() {
  for (int topk : {1, 3, 8, 40, 70})
    for (std::uint32_t map : {0u, 1u, 0x8000u, 0xA5A5u, 0xFFFFu}) {
      std::vector<std::pair<int, int>> want, seen;
      for (int token = 0; token < max_chunk_tokens; ++token)
        for (int k = 0; k < topk; ++k)
          if (map >> token & 1) want.emplace_back(token, k);
      std::vector<int> calls(Lanes);
      run_on_teams<Lanes>({}, 3, {}, [&](emulated_team<Lanes> const& t) {
        for_each_choice(t, topk, map, [&](int token, int k, bool there) {
          ++calls[static_cast<std::size_t>(t.lane())];
          // One lane after the other, so that their order is that of the list.
          for (int lane = 0; lane < Lanes; ++lane) {
            if (there && t.lane() == lane) seen.emplace_back(token, k);
            t.sync();
          }
        });
      }).value();
      EXPECT_EQ(seen, want) << Lanes << " lanes, top-" << topk << ", map " << map;
      for (int n : calls) EXPECT_EQ(n, calls[0]);
    }
}

TEST(chunk_choices, are_visited_once_in_the_order_of_tokens_and_choices) {
  visit_choices<32>();
  visit_choices<64>();
}

TEST(chunk_choices, count_positions_of_each_expert_from_low_lanes_to_high) {
  constexpr int lanes = 32, experts = 5;
  std::int64_t cursors[experts] = {0, 100, 200, 300, 400};
  std::vector<std::int64_t> got(lanes), want(lanes);
  auto const expert_of = [](int lane) { return lane % 7 == 3 ? -1 : lane * lane % experts; };
  std::int64_t next[experts] = {0, 100, 200, 300, 400};
  for (int lane = 0; lane < lanes; ++lane)
    want[static_cast<std::size_t>(lane)] = expert_of(lane) < 0 ? 0 : next[expert_of(lane)]++;
  run_on_teams<lanes>({}, 5, {}, [&](emulated_team<lanes> const& t) {
    got[static_cast<std::size_t>(t.lane())] = next_positions(t, expert_of(t.lane()), cursors);
  }).value();
  EXPECT_EQ(got, want);
  for (int e = 0; e < experts; ++e) EXPECT_EQ(cursors[e], next[e]);
}

TEST(chunk_choices, know_the_lanes_below) {
  EXPECT_EQ(lanes_below<std::uint64_t>(0), 0u);
  EXPECT_EQ(lanes_below<std::uint64_t>(63), ~std::uint64_t{0} >> 1);
  EXPECT_EQ(lanes_below<std::uint32_t>(31), 0x7FFFFFFFu);
}

}  // namespace
