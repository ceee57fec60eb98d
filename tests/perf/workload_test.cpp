// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "workload.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace {

using namespace ferry;
using namespace ferry::bench;

bench_case a_case() {
  bench_case c;
  c.ranks = 2;
  c.tokens = 2;
  c.topk = 2;
  c.experts = 4;
  c.hidden = 200;
  c.sent = wire::f32;
  return c;
}
// Token 0 of rank 0 stays; token 1 goes to both; token 0 of rank 1 has no expert; token 1 leaves.
std::vector<std::int32_t> const ids = {0, 1, 1, 2, -1, -1, 0, 1};

workload work_of(bench_case const& c, int rank) {
  return workload::make(c, routes_of(c, ids), rank).value();
}

TEST(bench_workload, counts_rows_that_cross_and_rows_that_stay) {
  bench_case c = a_case();
  workload const w = work_of(c, 0);
  EXPECT_EQ(w.sent().others, 2u * 800);
  EXPECT_EQ(w.sent().self, 2u * 800);
  EXPECT_EQ(w.returned().others, 2u * 800);
  EXPECT_EQ(w.returned().self, 2u * 800);
  c.reduction = reduction::per_choice;
  EXPECT_EQ(work_of(c, 0).returned().others, 3u * 800);
  EXPECT_EQ(work_of(c, 0).returned().self, 3u * 800);
}

TEST(bench_workload, goes_round_more_memory_than_caches_hold) {
  workload const w = work_of(a_case(), 0);
  EXPECT_GT(w.num_sets(), 100);
  EXPECT_NE(w.set(0, 0).tokens, w.set(1, 0).tokens);
  EXPECT_EQ(w.set(0, 0).tokens, w.set(w.num_sets(), 0).tokens);
}

// What the experts are said to have made, summed here as anybody would.
std::vector<float> sums(workload const& all, workload const& other) {
  std::vector<float> made(2 * 200, 0.0f);
  for (int t = 0; t < 2; ++t)
    for (int k = 0; k < 2; ++k)
      for (workload const* w : {&all, &other}) {
        std::int32_t const at = w->position(0, t, k);
        if (at < 0) continue;
        auto const* row = reinterpret_cast<float const*>(w->set(0, 0).results) + at * 200;
        for (int i = 0; i < 200; ++i)
          made[static_cast<std::size_t>(t * 200 + i)] += all.weights()[t * 2 + k] * row[i];
      }
  return made;
}

TEST(bench_workload, knows_its_sums_and_sees_a_wrong_one) {
  workload const zero = work_of(a_case(), 0), one = work_of(a_case(), 1);
  std::vector<float> made = sums(zero, one);
  auto const* bytes = reinterpret_cast<std::byte const*>(made.data());
  EXPECT_TRUE(zero.check_output(bytes, "me"));
  std::swap_ranges(made.begin(), made.begin() + 200, made.begin() + 200);
  auto const wrong = zero.check_output(bytes, "me");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("me: token 0"), std::string::npos);
}

TEST(bench_workload, fills_the_rows_of_every_slot) {
  bench_case c = a_case();
  c.slots = 3;
  workload const w = work_of(c, 0);
  for (int iteration : {0, 1, 2, 5})
    for (int slot = 0; slot < 3; ++slot)
      EXPECT_EQ(std::memcmp(w.set(0, 0).results, w.set(iteration, slot).results,
                            static_cast<std::size_t>(w.place().end) * 800),
                0);
}

TEST(bench_workload, pads_to_the_rows_of_the_busiest_expert) {
  bench_case c = a_case();
  EXPECT_EQ(work_of(c, 0).per_expert(), 0);
  c.layout = layout::padded;
  EXPECT_EQ(work_of(c, 0).per_expert(), 3);
}

}  // namespace
