// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The same kernels by lanes: choices are mapped and loads counted as on the CPU.

#include <gtest/gtest.h>

#include "balance/placed_steps.hpp"
#include "exchange/test_device.hpp"

#include <ferry/balance/surviving_experts.hpp>

namespace {

using namespace ferry;
using namespace ferry::oracle;

TEST(placed_device, every_choice_reaches_its_expert_whatever_the_placement) {
  if (on_gpu()) GTEST_SKIP() << "the test's experts run on the host";
  for (std::uint64_t seed = 201; seed <= 206; ++seed)
    run_placed_world(seed, 16, test_device, [](device const& d) { return queue::on(d).value(); });
}

// Expert 4 is on the last of the ranks that are left; 2 and 3 went with rank 1.
TEST(placed_device, choices_of_lost_experts_are_skipped_and_counted) {
  complaints wrong;
  run_ranks(3, std::chrono::seconds(60), wrong, [&](group const& g) {
    if (g.rank() == 1) return;
    group const left = g.without({1}).value();
    auto const experts = surviving_experts::of(contiguous_placement(1, 6, 3).value(), left).value();
    placed_world w{.experts = 6, .slots = experts.expert_slots(), .sampled = 0};
    device const where = test_device(0);
    exchange ep = make_exchange(left, where, w.options()).value();
    experts.apply(ep, replica_choice::hash).value();
    queue q = queue::on(where).value();
    twin_memory rows(where, 2 * 8 * 4), ids(where, 4 * 4);
    std::vector<std::int32_t> const chosen = {2, 4, -1, 3};
    std::copy(chosen.begin(), chosen.end(), ids.here<std::int32_t>());
    ids.send(q).value();
    rows.send(q).value();
    microbatch& mb = ep.microbatch(0);
    mb.dispatch_send(q, {.tokens = rows_of(rows.there<float>(), 2, 8),
                         .choices = dense<std::int32_t const>(ids.there<std::int32_t>(), 2, 2)})
        .value();
    mb.dispatch_receive(q).value();
    mb.release(q).value();
    mb.wait(q).value();
    wrong.check(ep.counters().ids_out_of_range == 2, "lost choices are counted");
    std::vector<std::uint64_t> served(3);
    if (left.rank() == 1) served[0] = 2;
    wrong.check(ep.slot_loads().value() == served, "and nobody serves them");
    left.barrier().value();
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

}  // namespace
