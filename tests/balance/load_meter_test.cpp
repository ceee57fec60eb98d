// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/load_meter.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "balance/placed_steps.hpp"

namespace {

using namespace ferry;
using namespace ferry::oracle;

TEST(load_meter, brings_the_counts_of_all_ranks_together_by_expert) {
  complaints wrong;
  placed_world const w{.ranks = 3, .experts = 5, .slots = 7, .layers = 2, .topk = 2};
  run_ranks(3, std::chrono::seconds(20), wrong, [&](group const& g) {
    exchange ep = make_exchange(g, w.options()).value();
    placement const where{2, 5, 3, 1, 7, {0, 1, 2, 3, 4, 0, 1, 4, 3, 2, 1, 0, 4, 3}};
    placed_rank rank(w, ep, queue());
    rank.place(where).value();
    load_meter meter = load_meter::make(ep).value();
    g.barrier().value();
    trace_sampler sampler = trace_sampler::make(2, 2, 100).value();
    std::vector<std::int64_t> want(10);
    for (std::uint64_t s = 1; s <= 8; ++s) {
      int const layer = static_cast<int>(s % 2);
      rank.step(layer, s, false, wrong).value();
      for (auto const& [expert, times] : rank.chosen())
        want[static_cast<std::size_t>(layer * 5 + expert)] += times;
      offer_samples(ep, sampler).value();
    }
    counted_loads const got = meter.read(ep, where).value();
    wrong.check(got.experts == want, "choices by expert");
    std::int64_t sum = 0;
    for (auto const n : got.ranks) sum += n;
    wrong.check(sum == got.choices() && sum > 0, "choices by rank");
    wrong.check(got.max_over_mean() >= 1 && got.worst() >= got.max_over_mean(), "balance");
    wrong.check(sampler.offered() > 0, "samples");
    wrong.check(meter.read(ep, where).value().choices() == 0, "a reading begins anew");
    wrong.check(meter.read(ep, where).value().max_over_mean() == 1, "without choices");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(load_meter, extrapolates_the_floor_of_long_readings) {
  double const at = floor_of(4096, 8, 256, 8).value();
  double const beyond = floor_of(4 * 4096, 8, 256, 8).value();
  EXPECT_NEAR(beyond - 1, (at - 1) / 2, 1e-9);
  EXPECT_GT(floor_of(128, 8, 256, 8).value(), at);
  EXPECT_FALSE(floor_of(128, 8, 4, 8));
}

}  // namespace
