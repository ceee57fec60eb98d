// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/load_meter.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <span>

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
    rank.leave_counts_alone();
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

TEST(offer_samples, sees_the_tokens_of_every_part_of_a_step) {
  complaints wrong;
  placed_world const w{.ranks = 2, .experts = 6, .slots = 6, .layers = 2, .topk = 2, .sampled = 6};
  std::atomic<int> second_was_empty = 0;
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& g) {
    exchange ep = make_exchange(g, w.options()).value();
    placement const where = contiguous_placement(2, 6, 2).value();
    placed_rank parts[] = {{w, ep, queue(), 0}, {w, ep, queue(), 1}};
    for (placed_rank& part : parts) {
      part.follow(where);
      part.leave_counts_alone();
    }
    for (std::uint64_t s = 1; s <= 30; ++s) {
      std::map<int, int> want, got;
      bool was_empty = false;
      // Now and then a step has but one part.
      for (std::size_t p = 0; p < (s % 5 == 0 ? 1u : 2u); ++p) {
        parts[p].step(static_cast<int>(s % 2), 2 * s + p, false, wrong).value();
        was_empty = parts[p].chosen_here().empty();
        for (auto const& [expert, times] : parts[p].chosen_here()) want[expert] += times;
      }
      trace_sampler first = trace_sampler::make(2, 2, 100).value(), second = first;
      trace_sampler* const both[] = {&first, &second};
      offer_samples(ep, both).value();
      for (std::int32_t const e : first.sample().experts)
        if (e >= 0) ++got[e];
      wrong.check(got == want, fmt::format("step {}: choices of both parts", s));
      wrong.check(second.sample().experts == first.sample().experts, "the same for both samplers");
      if (was_empty && !want.empty()) ++second_was_empty;
      auto const all = gather_samples(g, first.sample()).value();
      auto const theirs = g.all_gather(std::as_bytes(std::span(all.experts))).value();
      wrong.check(theirs[0] == theirs[1], "all ranks have the same");
      wrong.check(all.num_tokens >= first.sample().num_tokens, "and this rank's are among them");
    }
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
  EXPECT_GT(second_was_empty, 0) << "no step had an empty last part";
}

TEST(offer_samples, puts_a_token_together_whose_layers_run_on_slots_in_turn) {
  complaints wrong;
  placed_world const w{.ranks = 2, .experts = 6, .slots = 6, .layers = 2, .topk = 2, .sampled = 6};
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& g) {
    exchange ep = make_exchange(g, w.options()).value();
    placed_rank turns[] = {{w, ep, queue(), 0}, {w, ep, queue(), 1}};
    trace_sampler sampler = trace_sampler::make(2, 2, 1000).value();
    for (std::uint64_t s = 1; s <= 20; ++s)
      for (int layer = 0; layer < 2; ++layer) {
        placed_rank& rank = turns[layer];
        rank.follow(contiguous_placement(2, 6, 2).value());
        rank.leave_counts_alone();
        // The same tokens choose the same in both layers.
        rank.step(layer, s, false, wrong).value();
        if (layer == 1) offer_samples(ep, sampler).value();
      }
    routing_trace const& seen = sampler.sample();
    wrong.check(seen.num_tokens > 10, "tokens");
    for (std::int64_t t = 0; t < seen.num_tokens; ++t)
      wrong.check(std::ranges::equal(seen.choices(t, 0), seen.choices(t, 1)), "both layers");
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
