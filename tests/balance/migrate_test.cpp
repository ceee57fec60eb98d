// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/migrate.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "balance/move_plan.hpp"
#include "balance/moving_rank.hpp"

namespace {

using namespace ferry;
using namespace ferry::oracle;
using testing::HasSubstr;

TEST(keep_slots, leaves_what_stays_where_it_is) {
  placement const from{1, 6, 2, 1, 6, {0, 1, 2, 3, 4, 5}};
  placement const to{1, 6, 2, 1, 6, {4, 2, 0, 1, 5, 3}};
  EXPECT_EQ(keep_slots(from, to).experts, (std::vector<std::int32_t>{0, 4, 2, 3, 1, 5}));
  EXPECT_EQ(keep_slots(from, from), from);
}

TEST(plan_moves, sends_every_expert_that_comes_once_and_in_rounds_that_fit) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    dice from(seed);
    int const ranks = pick(from, 1, 5), experts = pick(from, ranks, 12);
    int const slots = experts + (ranks > 1 ? pick(from, 0, ranks) : 0);
    placement const was = random_placement(from, 4, experts, ranks, slots);
    placement const is = keep_slots(was, random_placement(from, 4, experts, ranks, slots));
    int const spare = most_slots(was) + pick(from, 0, 4);
    auto const rounds = plan_moves(was, is, spare).value();
    placement now = was;
    for (move_round const& round : rounds) {
      std::vector<int> taken(static_cast<std::size_t>(ranks));
      placement next = now;
      for (expert_move const& m : round.moves) {
        EXPECT_EQ(now.layer(m.layer)[static_cast<std::size_t>(m.from_slot)], m.expert);
        EXPECT_NE(m.from_rank, m.to_rank) << "nothing moves within a rank";
        EXPECT_EQ(m.spare, taken[static_cast<std::size_t>(m.to_rank)]++);
        next.layer(m.layer)[static_cast<std::size_t>(m.to_slot)] = m.expert;
      }
      for (int const t : taken) EXPECT_LE(t, spare);
      now = next;
      EXPECT_TRUE(validate(now)) << "seed " << seed;
    }
    EXPECT_EQ(now, is) << "seed " << seed;
  }
  placement const was{1, 4, 2, 1, 4, {0, 1, 2, 3}}, is{1, 4, 2, 1, 4, {2, 3, 0, 1}};
  EXPECT_THAT(plan_moves(was, is, 1).error().message, HasSubstr("receive 2 experts"));
}

void migrate_often(std::uint64_t seed, std::function<queue()> const& make_queue) {
  dice from(seed);
  placed_world w = random_placed_world(from);
  w.ranks = pick(from, 2, 4);
  w.experts = std::max(w.experts, w.ranks);
  w.slots = w.experts + pick(from, 0, w.ranks);
  // By loads, `nearest` would have to be told them here too.
  if (w.rule == replica_choice::nearest) w.rule = replica_choice::hash;
  migration_options const options{.bytes_per_step = static_cast<std::size_t>(pick(from, 8, 3000)),
                                  .replicas = w.rule};
  complaints wrong;
  run_ranks(w.ranks, std::chrono::seconds(60), wrong, [&](group const& g) {
    moving_rank r(w, g, wrong, seed, make_queue(), options);
    dice same(seed + 9);
    for (int turn = 0; turn < 3; ++turn) {
      placement const target = random_placement(same, w.layers, w.experts, w.ranks, w.slots);
      placement const want = keep_slots(r.moving.present(), target);
      if (auto const b = r.moving.begin(target); !b) return wrong.add(b.error().message);
      if (auto const done = r.run(); !done) return wrong.add(done.error().message);
      wrong.check(r.moving.present() == want, "the target is reached");
      for (int i = 0; i < 3; ++i)
        if (!r.step()) return;
    }
    wrong.check(r.moving.counters().bytes_sent == r.moving.counters().experts_sent * expert_bytes,
                "whole experts were sent");
  });
  EXPECT_TRUE(wrong.none()) << "seed " << seed << "\n" << wrong.text();
}

TEST(migration, every_step_is_exact_while_experts_move) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) migrate_often(seed, [] { return queue(); });
}
TEST(migration, also_beside_streams_that_replay_graphs) {
  for (std::uint64_t seed = 11; seed <= 14; ++seed)
    migrate_often(seed, [] { return queue::cpu_stream(1).value(); });
}

placed_world small_world() {
  return {.ranks = 2, .experts = 4, .slots = 4, .layers = 2, .rule = replica_choice::hash};
}
placement turned(placement p) {
  for (int l = 0; l < p.num_layers; ++l) std::swap(p.layer(l)[0], p.layer(l)[2]);
  return p;
}

TEST(migration, an_expert_that_does_not_arrive_whole_changes_nothing_anywhere) {
  complaints wrong;
  placed_world const w = small_world();
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& g) {
    moving_rank r(w, g, wrong, 3, queue(), {.bytes_per_step = 400});
    r.store.spoil_next = g.rank() == 1;
    r.moving.begin(turned(r.start)).value();
    auto const done = r.run();
    wrong.check(!done && done.error().code == error_code::internal, "it is seen");
    wrong.check(!done && done.error().message.find("where it was laid aside") != std::string::npos,
                "the message says where: " + (done ? "" : done.error().message));
    wrong.check(!r.moving.running() && r.moving.present() == r.start, "the old placement stays");
    wrong.check(r.store.is(r.start, g.rank()), "the old weights stay");
    // The group is whole, and the next attempt works.
    if (!r.step()) return;
    r.moving.begin(turned(r.start)).value();
    if (auto const again = r.run(); !again) return wrong.add(again.error().message);
    wrong.check(r.moving.present() == turned(r.start), "the next one ends well");
    r.step();
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(migration, weights_that_cannot_be_put_in_place_break_the_group) {
  complaints wrong;
  placed_world const w = small_world();
  run_ranks(2, std::chrono::seconds(5), wrong, [&](group const& g) {
    moving_rank r(w, g, wrong, 3, queue(), {});
    r.store.fail_swap = g.rank() == 1;
    r.moving.begin(turned(r.start)).value();
    auto const done = r.run();
    if (g.rank() == 1) wrong.check(!done && !g.usable(), "no further step on this rank");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(migration, refuses_what_cannot_be_done) {
  complaints wrong;
  placed_world const w = small_world();
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& g) {
    moving_rank r(w, g, wrong, 3, queue(), {});
    auto const begin = [&](placement const& p) -> std::string {
      auto const b = r.moving.begin(p);
      return b ? "" : b.error().message;
    };
    placement const other = contiguous_placement(2, 4, 1).value();
    wrong.check(begin(other).find("1 ranks") != std::string::npos, "ranks: " + begin(other));
    placement const differs = g.rank() == 0 ? turned(r.start) : r.start;
    wrong.check(begin(differs).find("another target") != std::string::npos, "differing targets");
    // Nothing to do is done at once.
    wrong.check(begin(r.start).empty() && !r.moving.running(), "the present placement");
    wrong.check(begin(turned(r.start)).empty() && r.moving.running(), "a move");
    wrong.check(begin(r.start).find("under way") != std::string::npos, "two at once");
    wrong.check(r.run().has_value(), "the first one goes on");
    byte_store narrow(r.start, g.rank(), g.rank() + 1, expert_bytes);
    auto const uneven = migration::make(r.ep, narrow, r.moving.present());
    wrong.check(!uneven && uneven.error().message.find("spare slots") != std::string::npos,
                "stores that differ");
    byte_store none(r.start, g.rank(), 0, expert_bytes);
    wrong.check(!migration::make(r.ep, none, r.moving.present()), "no spare slot");
    wrong.check(!migration::make(r.ep, r.store, r.moving.present(), {.bytes_per_step = 7}),
                "fewer than 8 bytes");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

}  // namespace
