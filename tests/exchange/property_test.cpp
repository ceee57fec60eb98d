// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/random_world.hpp"
#include "exchange/rank_run.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

struct pace {
  int one_in_sleeps = 0;  ///< 0: nobody sleeps
  int starved = -1;       ///< a rank that sleeps before every call
};

void sleep_at_times(pace const& p, int rank, dice& from) {
  using std::chrono::microseconds;
  if (rank == p.starved) std::this_thread::sleep_for(microseconds(pick(from, 200, 900)));
  if (p.one_in_sleeps && one_in(from, p.one_in_sleeps))
    std::this_thread::sleep_for(microseconds(pick(from, 1, 300)));
}

// All slots from one thread: the next call is drawn, the same on all ranks (R8), so steps of
// different slots overlap in every way.
void run_interleaved(world const& w, group const& ranks, int steps, pace const& p,
                     std::uint64_t seed, complaints& wrong) {
  int const rank = ranks.rank();
  result<exchange> ep = make_exchange(ranks, options_of(w, rank));
  if (!ep) return wrong.add(ep.error().message);
  queue q = queue::cpu(w.options.blocks).value();
  std::vector<rank_slot> slots;
  for (int s = 0; s < w.options.num_microbatches; ++s) slots.emplace_back(w, rank, s, *ep, wrong);
  dice order(seed), delays(static_cast<std::uint64_t>(rank));
  int done = 0;
  while (done < steps) {
    rank_slot& slot = slots[order() % slots.size()];
    sleep_at_times(p, rank, delays);
    if (!slot.advance(q)) return;
    done += slot.idle();
  }
  // Nothing is left open.
  for (rank_slot& slot : slots)
    while (!slot.idle())
      if (!slot.advance(q)) return;
}

void run_world(world const& w, int steps, pace const& p, std::uint64_t seed) {
  complaints wrong;
  run_ranks(w.ranks, std::chrono::seconds(30), wrong,
            [&](group const& ranks) { run_interleaved(w, ranks, steps, p, seed, wrong); });
  ASSERT_TRUE(wrong.none()) << "seed " << seed << ": " << describe(w) << "\n" << wrong.text();
}

TEST(exchange_property, brings_every_row_to_its_experts_and_home_in_random_worlds) {
  int const worlds = effort(120);
  for (int i = 0; i < worlds && !HasFatalFailure(); ++i) {
    std::uint64_t const seed = 1000 + static_cast<std::uint64_t>(i);
    run_world(random_world(seed), 12, {.one_in_sleeps = i % 3 ? 0 : 20}, seed);
  }
}

// Only a rank that falls behind shows a credit that is not waited for.
TEST(exchange_property, stays_right_over_hundreds_of_steps_with_one_rank_starved) {
  int const worlds = effort(8);
  for (int i = 0; i < worlds && !HasFatalFailure(); ++i) {
    std::uint64_t const seed = 5000 + static_cast<std::uint64_t>(i);
    world w = random_world(seed);
    for (std::uint64_t more = 1; w.ranks < 2 || w.options.hidden > 200; ++more)
      w = random_world(seed + 100 * more);
    run_world(w, 150, {.one_in_sleeps = 10, .starved = i % w.ranks}, seed);
  }
}

TEST(exchange_property, runs_each_slot_from_a_thread_of_its_own) {
  int const worlds = effort(8);
  for (int i = 0; i < worlds && !HasFatalFailure(); ++i) {
    std::uint64_t const seed = 7000 + static_cast<std::uint64_t>(i);
    world w = random_world(seed);
    w.options.num_microbatches = 2 + i % 3;
    complaints wrong;
    run_ranks(w.ranks, std::chrono::seconds(30), wrong, [&](group const& ranks) {
      result<exchange> ep = make_exchange(ranks, options_of(w, ranks.rank()));
      if (!ep) return wrong.add(ep.error().message);
      std::vector<std::thread> threads;
      for (int s = 0; s < w.options.num_microbatches; ++s)
        threads.emplace_back([&, s] {
          queue q = queue::cpu(w.options.blocks).value();
          rank_slot slot(w, ranks.rank(), s, *ep, wrong);
          while (slot.steps_done() < 10)
            if (!slot.advance(q)) return;
        });
      for (std::thread& t : threads) t.join();
    });
    ASSERT_TRUE(wrong.none()) << "seed " << seed << ": " << describe(w) << "\n" << wrong.text();
  }
}

}  // namespace
