// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Steps that are captured once and replayed: a replay changes nothing but data.

#include "exchange/captured_targets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using namespace std::chrono_literals;
using testing::HasSubstr;

int most_tokens(step const& s) {
  int most = 0;
  for (rank_step const& r : s.brought) most = std::max(most, r.tokens);
  return most;
}

class captured : public on_target {};
INSTANTIATE_TEST_SUITE_P(on, captured,
                         testing::Values(target{"a_plain_queue", "cpu", false, 0, 10000},
                                         target{"a_cpu_stream", "cpu", true, 0, 10000},
                                         target{"a_cpu_stream_in_rounds", "cpu", true, 3, 2000},
                                         target{"emulated_teams", "emulated:32", true, 0, 60},
                                         target{"emulated_teams_in_rounds", "emulated:64", true, 4,
                                                25}),
                         [](auto const& which) { return std::string(which.param.name); });

// Two graphs of different sizes take turns on one slot, with one rank late in every gap, until the
// larger one has been replayed as often as it should.
TEST_P(captured, is_exact_at_every_replay_whatever_the_routing_and_the_counts) {
  target const& t = GetParam();
  device const where = device::open(t.device).value();
  world const w = exact_world(4, t.round_tokens);
  int const replays = t.replays_here();
  // Every third step would fit the small graph, and every other one of these takes it.
  std::vector<step> drawn = draw_steps(w, replays, 100);
  world half = w;
  half.options.max_tokens /= 2;
  std::vector<step> const small_ones = draw_steps(half, replays / 3, 101);
  for (std::size_t i = 0; i < small_ones.size(); ++i) drawn[3 * i] = small_ones[i];
  complaints wrong;
  run_ranks(w.ranks, 60s, wrong, [&](group const& ranks) {
    int const rank = ranks.rank();
    result<exchange> ep = make_exchange(ranks, where, w.options);
    if (!ep) return wrong.add(ep.error().message);
    queue q = queue_of(t, where);
    std::vector<graph> graphs;
    std::vector<std::unique_ptr<captured_step>> steps;
    for (int rows : {w.options.max_tokens, w.options.max_tokens / 2}) {
      steps.push_back(std::make_unique<captured_step>(w, rank, *ep, 0, where, rows));
      result<graph> made = capture(q, [&] { return steps.back()->put(q); });
      if (!made) return wrong.add(made.error().message);
      graphs.push_back(*made);
    }
    dice delays(7);  // the same on all ranks: who is late
    int replayed[2] = {};
    for (int i = 0; replayed[0] < replays; ++i) {
      step const& now = drawn[static_cast<std::size_t>(i % replays)];
      bool const small = most_tokens(now) <= steps[1]->rows() && i % 2 == 0;
      int const late = pick(delays, 0, w.ranks - 1), by = pick(delays, 0, 150);
      if (late == rank) std::this_thread::sleep_for(std::chrono::microseconds(by));
      captured_step& s = *steps[small ? 1 : 0];
      s.bring(now);
      result<void> done = graphs[small ? 1 : 0].launch(q);
      if (done) done = ep->microbatch(0).wait(q);
      if (!done) return wrong.add(done.error().message);
      s.check(now, i, wrong);
      ++replayed[small ? 1 : 0];
    }
    wrong.check(replayed[1] > 0, "the small graph had no turn");
    wrong.check(ep->counters().steps == static_cast<std::uint64_t>(replayed[0] + replayed[1]),
                "steps are miscounted");
    ranks.barrier().value();
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

// One graph with a step on each of two slots, in an order in which they overlap; and steps that are
// not captured in between.
TEST_P(captured, holds_overlapping_steps_of_two_slots_and_lives_beside_plain_ones) {
  target const& t = GetParam();
  device const where = device::open(t.device).value();
  world const w = exact_world(3, t.round_tokens);
  int const replays = std::min(t.replays_here(), 200);
  std::vector<step> const drawn = draw_steps(w, replays + 1, 31);
  complaints wrong;
  run_ranks(w.ranks, 60s, wrong, [&](group const& ranks) {
    result<exchange> ep = make_exchange(ranks, where, w.options);
    if (!ep) return wrong.add(ep.error().message);
    queue q = queue_of(t, where);
    int const rank = ranks.rank(), rows = w.options.max_tokens;
    captured_step a(w, rank, *ep, 0, where, rows), b(w, rank, *ep, 1, where, rows);
    captured_step plain(w, rank, *ep, 0, where, rows);
    result<graph> const both = capture(q, [&]() -> result<void> {
      FERRY_CHECK(a.send(q));
      FERRY_CHECK(b.send(q));
      FERRY_CHECK(a.receive(q));
      FERRY_CHECK(b.receive(q));
      FERRY_CHECK(b.give_back(q));
      FERRY_CHECK(a.give_back(q));
      FERRY_CHECK(a.gather(q));
      return b.gather(q);
    });
    if (!both) return wrong.add(both.error().message);
    for (int i = 0; i < replays; ++i) {
      step const& first = drawn[static_cast<std::size_t>(i)];
      step const& second = drawn[static_cast<std::size_t>(i) + 1];
      a.bring(first);
      b.bring(second);
      plain.bring(second);
      result<void> done = both->launch(q);
      if (done) done = plain.put(q);
      if (done) done = ep->microbatch(0).wait(q);
      if (!done) return wrong.add(done.error().message);
      a.check(first, i, wrong);
      b.check(second, i, wrong);
      plain.check(second, i, wrong);
    }
    ranks.barrier().value();
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

// A budget of blocks is part of the captured call; graphs and plain calls with others take turns.
TEST_P(captured, keeps_the_blocks_of_each_call) {
  target const& t = GetParam();
  device const where = device::open(t.device).value();
  world w = exact_world(3, t.round_tokens);
  w.options.blocks = 3;
  w.options.block_teams = where.kind() == device_kind::cpu ? 0 : 1;
  int const replays = std::min(t.replays_here(), 100);
  std::vector<step> const drawn = draw_steps(w, replays, 41);
  complaints wrong;
  run_ranks(w.ranks, 60s, wrong, [&](group const& ranks) {
    int const rank = ranks.rank();
    result<exchange> ep = make_exchange(ranks, where, w.options);
    if (!ep) return wrong.add(ep.error().message);
    queue q = where.kind() != device_kind::cpu ? queue::on(where).value()
              : t.stream                       ? queue::cpu_stream(3).value()
                                               : queue::cpu(3).value();
    captured_step s(w, rank, *ep, 0, where, w.options.max_tokens);
    std::vector<graph> graphs;
    // Ranks need not agree.
    for (int i = 0; i < 4; ++i)
      graphs.push_back(capture(q, [&]() -> result<void> {
                         FERRY_CHECK(s.with({.blocks = (i + rank) % 4}).send(q));
                         FERRY_CHECK(s.with({.blocks = (i + 1) % 4}).receive(q));
                         FERRY_CHECK(s.with({.blocks = (i + 2) % 4}).give_back(q));
                         return s.with({.blocks = (i + 3) % 4}).gather(q);
                       }).value());
    for (int i = 0; i < replays; ++i) {
      s.bring(drawn[static_cast<std::size_t>(i)]);
      result<void> done = i % 7 == 6 ? s.with({.blocks = i % 4}).put(q)
                                     : graphs[static_cast<std::size_t>(i * 5 % 4)].launch(q);
      if (done) done = ep->microbatch(0).wait(q);
      if (!done) return wrong.add(done.error().message);
      s.check(drawn[static_cast<std::size_t>(i)], i, wrong);
    }
    result<graph> const more = capture(q, [&] { return s.with({.blocks = 4}).put(q); });
    wrong.check(!more && more.error().code == error_code::invalid_argument, "4 blocks of 3");
    ranks.barrier().value();
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST_P(captured, is_refused_in_part) {
  alone a(GetParam());
  for (int calls : {1, 2, 3}) {
    result<graph> const g = capture(a.q, [&] { return a.s.put(a.q, calls); });
    ASSERT_FALSE(g) << calls;
    EXPECT_EQ(g.error().code, error_code::invalid_state);
    EXPECT_THAT(g.error().message, HasSubstr("whole or not at all"));
    a.expect_usable();
  }
  a.s.put(a.q, 1).value();
  result<void> within;
  result<graph> const g = capture(a.q, [&]() -> result<void> {
    within = a.s.receive(a.q);
    return {};
  });
  ASSERT_FALSE(within);
  EXPECT_EQ(within.error().code, error_code::invalid_state);
  EXPECT_THAT(within.error().message, HasSubstr("was begun outside of it"));
  a.s.receive(a.q).value();
  a.s.give_back(a.q).value();
  a.s.gather(a.q).value();
  a.ep.microbatch(0).wait(a.q).value();
  a.expect_usable();
}

TEST_P(captured, takes_no_waits_and_no_collectives) {
  alone a(GetParam());
  result<void> waited, met;
  result<void> made;
  graph const g = capture(a.q, [&]() -> result<void> {
                    waited = a.ep.microbatch(0).wait(a.q);
                    met = a.ranks.barrier();
                    result<exchange> const more = make_exchange(a.ranks, a.where, a.w.options);
                    if (!more) made = more.error();
                    return a.s.put(a.q);
                  }).value();
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, error_code::invalid_state);
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, error_code::invalid_state);
  ASSERT_FALSE(made);
  a.ranks.barrier().value();
  a.expect_usable();
}

TEST_P(captured, is_not_launched_while_a_step_is_open) {
  alone a(GetParam());
  graph const g = capture(a.q, [&] { return a.s.put(a.q); }).value();
  a.s.bring(draw_steps(a.w, 1, 4)[0]);
  a.s.put(a.q, 2).value();
  result<void> const launched = g.launch(a.q);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code, error_code::invalid_state);
  EXPECT_THAT(launched.error().message, HasSubstr("tokens were received"));
  a.s.give_back(a.q).value();
  a.s.gather(a.q).value();
  a.ep.microbatch(0).wait(a.q).value();
  g.launch(a.q).value();
  a.ep.microbatch(0).wait(a.q).value();
  a.expect_usable();
}

TEST_P(captured, reports_a_token_count_out_of_range_and_goes_on) {
  alone a(GetParam());
  graph const g = capture(a.q, [&] { return a.s.put(a.q); }).value();
  std::vector<step> const drawn = draw_steps(a.w, 1, 5);
  for (int tokens : {-1, a.w.options.max_tokens + 1}) {
    step wrong = drawn[0];
    wrong.brought[0].tokens = tokens;
    a.s.bring(wrong);
    g.launch(a.q).value();
    result<void> const told = a.ep.microbatch(0).wait(a.q);
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, error_code::invalid_argument);
    EXPECT_THAT(told.error().message, HasSubstr("num_tokens"));
    a.ep.microbatch(0).wait(a.q).value();  // once
  }
  a.expect_usable();
}

TEST_P(captured, names_a_rank_that_does_not_come_and_is_refused_from_then_on) {
  target const& t = GetParam();
  device const where = device::open(t.device).value();
  world const w = exact_world(2, t.round_tokens);
  std::vector<step> const drawn = draw_steps(w, 1, 8);
  complaints wrong;
  run_ranks(2, 300ms, wrong, [&](group const& ranks) {
    exchange ep = make_exchange(ranks, where, w.options).value();
    queue q = queue_of(t, where);
    captured_step s(w, ranks.rank(), ep, 0, where, w.options.max_tokens);
    graph const g = capture(q, [&] { return s.put(q); }).value();
    s.bring(drawn[0]);
    if (ranks.rank() == 1) {
      std::this_thread::sleep_for(1500ms);
      return;
    }
    result<void> done = g.launch(q);
    if (done) done = ep.microbatch(0).wait(q);
    if (done) return wrong.add("nobody was missed");
    wrong.check(done.error().code == error_code::timeout &&
                    done.error().message.find("rank 1") != std::string::npos,
                done.error().message);
    result<void> const again = g.launch(q);
    wrong.check(!again && again.error().message.find("rank 1") != std::string::npos,
                "a launch on a broken group");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

}  // namespace
