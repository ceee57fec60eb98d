// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/rebalance.hpp>

#include <ferry/balance/metrics.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "balance/byte_store.hpp"
#include "balance/placed_steps.hpp"

namespace {

using namespace ferry;
using namespace ferry::oracle;

TEST(rebalancer, levels_a_load_that_is_not_and_keeps_every_step_exact) {
  complaints wrong;
  // All choices name the first quarter of the experts, which one rank holds.
  placed_world const w{.ranks = 4, .experts = 16, .slots = 16, .layers = 2, .topk = 2, .hot = 4};
  run_ranks(4, std::chrono::seconds(60), wrong, [&](group const& g) {
    exchange ep = make_exchange(g, w.options()).value();
    placement const start = contiguous_placement(2, 16, 4).value();
    byte_store store(start, g.rank(), 4, 500);
    placed_rank rank(w, ep, queue());
    rank.ask([&](int layer, int slot) { return store.holds(layer, slot); });
    rank.follow(start);
    rebalancer keeps =
        rebalancer::make(ep, store, start, {.every = 20, .migrate = {.bytes_per_step = 300}})
            .value();
    for (std::uint64_t s = 0; s < 160; ++s) {
      auto const done = rank.step(static_cast<int>(s % 2), s + 1, false, wrong);
      if (!done) return wrong.add(done.error().message);
      if (auto const r = keeps.after_step(); !r) return wrong.add(r.error().message);
      rank.follow(keeps.present());
    }
    wrong.check(keeps.counters().rounds > 0, "experts have moved");
    wrong.check(keeps.first() && keeps.first()->max_over_mean == 4, "all on one rank at first");
    wrong.check(keeps.last() && keeps.last()->max_over_mean < 1.4,
                fmt::format("level at last: {}", keeps.last()->max_over_mean));
    wrong.check(keeps.last()->floor > 1 && keeps.last()->floor < 1.4, "beside a floor");
    std::int64_t const before = keeps.last()->step;
    keeps.finish().value();
    wrong.check(keeps.last()->step >= before && keeps.last()->step == 160, "the rest is read");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(rebalancer, brings_together_what_tokens_choose_together) {
  complaints wrong;
  // A token's two choices are among two experts that lie on different ranks at first.
  placed_world const w{.ranks = 2, .experts = 8, .slots = 8, .layers = 2, .topk = 2, .pairs = true};
  run_ranks(2, std::chrono::seconds(60), wrong, [&](group const& g) {
    exchange ep = make_exchange(g, w.options()).value();
    placement const start = contiguous_placement(2, 8, 2).value();
    byte_store store(start, g.rank(), 4, 500);
    placed_rank rank(w, ep, queue());
    rank.leave_counts_alone();
    rank.ask([&](int layer, int slot) { return store.holds(layer, slot); });
    rank.follow(start);
    rebalancer keeps =
        rebalancer::make(ep, store, start,
                         {.every = 40, .policy = placement_policy::local, .most_over_mean = 1.3})
            .value();
    trace_sampler also = trace_sampler::make(2, 2, 1000).value();
    for (std::uint64_t s = 0; s < 100; ++s) {
      auto const done = rank.step(static_cast<int>(s % 2), s + 1, false, wrong);
      if (!done) return wrong.add(done.error().message);
      if (auto const r = keeps.after_step(&also); !r) return wrong.add(r.error().message);
      rank.follow(keeps.present());
    }
    wrong.check(also.offered() > 50, "samples for others");
    wrong.check(keeps.counters().rounds > 0, "experts have moved");
    double const before = distance_of(start, also.sample()).value().ranks_per_token;
    double const after = distance_of(keeps.present(), also.sample()).value().ranks_per_token;
    wrong.check(after < before - 0.3, fmt::format("{} ranks per token, {} before", after, before));
    // Another 60 steps: nothing is worth moving for half a rank per token and layer.
    placement const settled = keeps.present();
    rebalancer stays =
        rebalancer::make(
            ep, store, settled,
            {.every = 20, .policy = placement_policy::local, .min_gain = 1, .most_over_mean = 1.3})
            .value();
    for (std::uint64_t s = 0; s < 60; ++s) {
      rank.step(static_cast<int>(s % 2), s + 500, false, wrong).value();
      stays.after_step().value();
    }
    wrong.check(stays.counters().rounds == 0, "nothing moves");
    exchange_options o = w.options();
    o.sampled_tokens = 0;
    exchange blind = make_exchange(g, o).value();
    auto const refused = rebalancer::make(blind, store, start, {.policy = placement_policy::local});
    wrong.check(!refused && refused.error().message.find("0 tokens") != std::string::npos,
                "without samples");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(rebalancer, stays_where_it_is_for_a_small_gain) {
  complaints wrong;
  placed_world const w{.ranks = 2, .experts = 8, .slots = 8, .layers = 1};
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& g) {
    exchange ep = make_exchange(g, w.options()).value();
    placement const start = contiguous_placement(1, 8, 2).value();
    byte_store store(start, g.rank(), 4, 500);
    placed_rank rank(w, ep, queue());
    rank.follow(start);
    rebalancer keeps = rebalancer::make(ep, store, start, {.every = 5, .min_gain = 5}).value();
    for (std::uint64_t s = 1; s <= 20; ++s) {
      rank.step(0, s, false, wrong).value();
      keeps.after_step().value();
    }
    wrong.check(keeps.counters().rounds == 0 && keeps.present() == start, "nothing moves");
    wrong.check(keeps.window().steps() == 4, "four intervals in the window");
    wrong.check(!rebalancer::make(ep, store, start, {.every = 0}), "every 0 steps");
    wrong.check(!rebalancer::make(ep, store, start, {.policy = placement_policy::eplb}), "eplb");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

}  // namespace
