// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The exchange of ranks on emulated devices, held against the oracle: all that a rank on a GPU does
// on its host, and the kernels on teams of 32 and 64 lanes.

#include "exchange/device_slot.hpp"
#include "exchange/random_world.hpp"
#include "exchange/test_device.hpp"
#include "exec/current_device.hpp"
#include "exec/emulated/emulated_backend.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

// A world that lanes, each of which is a function of its own, can walk through in a test's time.
world small_world(std::uint64_t seed, int ranks) {
  dice from(seed);
  world w;
  choose_formats(w, from);
  choose_sizes(w, from);
  exchange_options& o = w.options;
  w.ranks = ranks ? ranks : w.ranks;
  o.num_experts = pick(from, 1, 3 * w.ranks);
  o.topk = pick(from, 1, 6);
  o.hidden = pick_one(from, {1, 7, 16, 64, 128, 129, 256, 300, 384});
  o.max_tokens = pick(from, 1, 12);
  choose_layout(w, from);
  o.blocks = pick(from, 1, 2);
  o.block_teams = pick(from, 1, 2);
  o.num_microbatches = pick(from, 1, 2);
  for (int r = 0; r < w.ranks; ++r) w.fnuz.push_back(one_in(from, 2));
  for (int i = 0; i < 3; ++i) w.steps.push_back(random_step(w, from));
  return w;
}

/// Which device each rank takes.
using devices = std::function<device(int rank)>;

void run_world(world const& w, devices const& of_rank, int steps, std::uint64_t seed) {
  complaints wrong;
  run_ranks(w.ranks, std::chrono::seconds(60), wrong, [&](group const& ranks) {
    int const rank = ranks.rank();
    device const where = of_rank(rank);
    result<exchange> ep = make_exchange(ranks, where, options_of(w, rank));
    if (!ep) return wrong.add(ep.error().message);
    queue q = queue::on(where).value();
    std::vector<device_slot> slots;
    for (int s = 0; s < w.options.num_microbatches; ++s)
      slots.emplace_back(w, rank, s, *ep, where, wrong);
    dice order(seed);
    for (int done = 0; done < steps;) {
      device_slot& slot = slots[order() % slots.size()];
      if (!slot.advance(q)) return;
      done += slot.idle();
    }
    for (device_slot& slot : slots)
      while (!slot.idle())
        if (!slot.advance(q)) return;
  });
  ASSERT_TRUE(wrong.none()) << "seed " << seed << ": " << describe(w) << "\n" << wrong.text();
}

TEST(device_exchange, brings_every_row_to_its_experts_and_home_on_eight_ranks) {
  int const worlds = effort(16);
  for (int i = 0; i < worlds && !HasFatalFailure(); ++i) {
    std::uint64_t const seed = 300 + static_cast<std::uint64_t>(i);
    run_world(
        small_world(seed, 8), [&](int) { return test_device(i); }, 4, seed);
  }
}

TEST(device_exchange, does_so_between_any_number_of_ranks_of_different_widths) {
  int const worlds = effort(24);
  for (int i = 0; i < worlds && !HasFatalFailure(); ++i) {
    std::uint64_t const seed = 700 + static_cast<std::uint64_t>(i);
    run_world(
        small_world(seed, 0), [](int rank) { return test_device(rank); }, 4, seed);
  }
}

// An engine's thread may work on another device than its rank's: emulated launches refuse any but
// the current one, as a GPU's runtime does.
TEST(device_exchange, leaves_the_thread_the_current_device_that_it_had) {
  if (on_gpu()) GTEST_SKIP() << "this needs two devices";
  auto const wide = current_device::make(device::open("emulated:64").value()).value();
  complaints wrong;
  world const w = small_world(41, 1);
  thread_ranks const meeting = threads(1);
  group const alone = join(meeting.rank(0)).value();
  device const narrow = device::open("emulated:32").value();
  exchange ep = make_exchange(alone, narrow, options_of(w, 0)).value();
  EXPECT_TRUE(check_current_emulated(64));
  queue q = queue::on(narrow).value();
  device_slot slot(w, 0, 0, ep, narrow, wrong);
  do ASSERT_TRUE(slot.advance(q)) << wrong.text();
  while (!slot.idle());
  EXPECT_TRUE(wrong.none()) << wrong.text();
  EXPECT_TRUE(check_current_emulated(64));
}

}  // namespace
