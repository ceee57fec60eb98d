// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/expert_groups.hpp>

#include "kernels/emulated_teams.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;

constexpr int lanes = 32, ranks = 2, experts = 80;

// A rank with more experts than a team has lanes, whose sources send 1, 2, 3 ... rows to each.
struct counted_rows {
  step_frame frame;
  std::vector<std::uint64_t> window;
  peer_table peers;

  counted_rows() {
    exchange_shape& shape = frame.shape;
    shape.ranks = ranks;
    shape.experts = ranks * experts;
    shape.topk = 1;
    shape.max_tokens = shape.round_tokens = 8;
    shape.row_bytes = shape.home_bytes = 16;
    frame.slot = lay_out_slot(shape);
    frame.layout.align = 4;
    window.resize(frame.slot.bytes() / 8 + 8);
    auto* const base = reinterpret_cast<std::byte*>(window.data());
    peers.rows[0] = peers.flags[0] = base;
    for (int s = 0; s < ranks; ++s)
      for (int e = 0; e < experts; ++e)
        reinterpret_cast<std::int32_t*>(
            base + frame.at(slot_field::counts, static_cast<std::size_t>(s)))[e] = sent(s, e);
  }
  static int sent(int source, int e) { return source == 0 ? e % 5 : e % 3; }
};

TEST(expert_groups, start_where_the_rows_before_end) {
  counted_rows all;
  std::vector<std::int64_t> starts(experts, -1), befores(experts, -1), rows(experts, -1);
  run_on_teams<lanes>({}, 7, {}, [&](emulated_team<lanes> const& t) {
    emulated_delivery<lanes> const net(all.peers, all.peers.flags[0], all.peers.rows[0]);
    for_each_group(t, net, all.frame, 1,
                   [&](int e, bool there, std::int64_t start, std::int64_t before, std::int64_t n) {
                     if (!there) return;
                     auto const i = static_cast<std::size_t>(e);
                     starts[i] = start;
                     befores[i] = before;
                     rows[i] = n;
                   });
  }).value();
  std::int64_t next = 0;
  for (int e = 0; e < experts; ++e) {
    auto const i = static_cast<std::size_t>(e);
    std::int64_t const n = counted_rows::sent(0, e) + counted_rows::sent(1, e);
    ASSERT_EQ(starts[i], next) << e;
    ASSERT_EQ(befores[i], counted_rows::sent(0, e)) << e;
    ASSERT_EQ(rows[i], n) << e;
    next += round_up(n, std::int64_t{4});
  }
}

TEST(expert_groups, are_cut_to_the_room_that_there_is) {
  counted_rows all;
  all.frame.layout.capacity = 150;
  std::vector<std::int32_t> starts(experts), counts(experts), wanted(experts);
  std::vector<std::uint64_t> tallies(static_cast<std::size_t>(tally::count_));
  std::int32_t end = -1;
  all.frame.memory.starts = starts.data();
  all.frame.memory.counts = counts.data();
  all.frame.memory.wanted = wanted.data();
  all.frame.memory.end = &end;
  all.frame.memory.tallies = tallies.data();
  auto const most = static_cast<std::size_t>(all.frame.shape.most_local_experts());
  std::vector<std::uint64_t> loads(3 * most, 5);  // of three layers, not their first step
  all.frame.placed.loads = loads.data();
  run_on_teams<lanes>({.teams = 2}, 7, {}, [&](emulated_team<lanes> const& t) {
    write_groups(t, emulated_delivery<lanes>(all.peers, all.peers.flags[0], all.peers.rows[0]),
                 all.frame, 1);
  }).value();
  std::int64_t next = 0, fit_all = 0, last = 0, sent_all = 0;
  for (int e = 0; e < experts; ++e) {
    auto const i = static_cast<std::size_t>(e);
    std::int64_t const n = counted_rows::sent(0, e) + counted_rows::sent(1, e);
    std::int64_t const room = next < 150 ? 150 - next : 0, fit = n < room ? n : room;
    ASSERT_EQ(starts[i], next < 150 ? next : 150) << e;
    ASSERT_EQ(counts[i], fit) << e;
    ASSERT_EQ(wanted[i], n) << e;
    ASSERT_EQ(loads[most + i], 5u + static_cast<std::uint64_t>(n)) << e;
    ASSERT_EQ(loads[i], 5u) << e;
    ASSERT_EQ(loads[2 * most + i], 5u) << e;
    fit_all += fit;
    sent_all += n;
    if (fit > 0) last = next + fit;
    next += round_up(n, std::int64_t{4});
  }
  EXPECT_EQ(end, last);
  EXPECT_EQ(tallies[static_cast<int>(tally::rows_received)], static_cast<std::uint64_t>(sent_all));
  EXPECT_EQ(tallies[static_cast<int>(tally::rows_without_room)],
            static_cast<std::uint64_t>(sent_all - fit_all));
}

}  // namespace
