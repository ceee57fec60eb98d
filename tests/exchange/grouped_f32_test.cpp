// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/rank_run.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

// The plainest setting, first: mapped peers, grouped rows, f32 everywhere, one slot, one thread a
// rank.
world plain_world(std::uint64_t seed) {
  dice from(seed);
  world w;
  w.ranks = pick(from, 1, 9);
  w.options = {.num_experts = pick(from, 1, 40),
               .topk = pick(from, 1, 9),
               .hidden = pick(from, 1, 40),
               .max_tokens = pick(from, 1, 30),
               .tokens = dtype::f32,
               .wire = wire::f32,
               .expert_rows = dtype::f32,
               .combine_wire = wire::f32,
               .output = dtype::f32,
               .row_align = pick_one(from, {1, 1, 4, 16}),
               .num_microbatches = 1};
  w.fnuz.assign(static_cast<std::size_t>(w.ranks), false);
  for (int i = 0; i < 5; ++i) w.steps.push_back(random_step(w, from));
  return w;
}

TEST(exchange_plain, brings_every_grouped_f32_row_to_its_experts_and_home) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    world const w = plain_world(seed);
    complaints wrong;
    run_ranks(w.ranks, std::chrono::seconds(20), wrong, [&](group const& ranks) {
      result<exchange> ep = make_exchange(ranks, w.options);
      if (!ep) return wrong.add(ep.error().message);
      queue q;
      rank_slot slot(w, ranks.rank(), 0, *ep, wrong);
      while (slot.steps_done() < 15)
        if (!slot.advance(q)) return;
    });
    ASSERT_TRUE(wrong.none()) << "seed " << seed << ", " << w.ranks << " ranks: " << wrong.text();
  }
}

}  // namespace
