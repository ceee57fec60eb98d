// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "routing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace {

using namespace ferry;
using namespace ferry::bench;

bench_case a_case(routing_kind routing) {
  bench_case c;
  c.ranks = 4;
  c.tokens = 500;
  c.topk = 6;
  c.experts = 64;
  c.routing = routing;
  return c;
}

std::vector<std::int32_t> choices(bench_case const& c) {
  return make_choices(c, 7).value();
}

TEST(bench_routing, chooses_different_experts_that_exist) {
  for (auto const& [word, routing] : routing_words) {
    bench_case const c = a_case(routing);
    auto const ids = choices(c);
    ASSERT_EQ(ids.size(), 4u * 500 * 6);
    for (std::size_t t = 0; t < ids.size(); t += 6) {
      std::set<std::int32_t> const different(ids.begin() + static_cast<std::ptrdiff_t>(t),
                                             ids.begin() + static_cast<std::ptrdiff_t>(t) + 6);
      EXPECT_EQ(different.size(), 6u) << word;
      EXPECT_GE(*different.begin(), 0) << word;
      EXPECT_LT(*different.rbegin(), 64) << word;
    }
  }
}

TEST(bench_routing, is_the_same_for_the_same_seed_only) {
  bench_case const c = a_case(routing_kind::uniform);
  EXPECT_EQ(make_choices(c, 1).value(), make_choices(c, 1).value());
  EXPECT_NE(make_choices(c, 1).value(), make_choices(c, 2).value());
}

std::vector<int> popularity(std::vector<std::int32_t> const& ids) {
  std::vector<int> rows(64);
  for (std::int32_t id : ids) ++rows[static_cast<std::size_t>(id)];
  std::ranges::sort(rows, std::greater());
  return rows;
}

TEST(bench_routing, is_as_uneven_as_its_name_says) {
  // 12,000 choices: 187 for each expert when all are equally likely.
  auto const even = popularity(choices(a_case(routing_kind::uniform)));
  EXPECT_LT(even.front(), 260);
  EXPECT_GT(even.back(), 120);
  auto const uneven = popularity(choices(a_case(routing_kind::power_law)));
  EXPECT_GT(uneven.front(), 1000);
  EXPECT_GT(uneven.front(), 2 * uneven[8]);
  EXPECT_LT(uneven.back(), 100);
}

TEST(bench_routing, keeps_a_token_within_four_of_eight_groups) {
  auto const ids = choices(a_case(routing_kind::group_limited));
  std::set<std::int32_t> all;
  std::size_t most = 0;
  for (std::size_t t = 0; t < ids.size(); t += 6) {
    std::set<std::int32_t> groups;
    for (std::size_t k = 0; k < 6; ++k) groups.insert(ids[t + k] / 8);
    most = std::max(most, groups.size());
    all.insert(groups.begin(), groups.end());
  }
  EXPECT_EQ(most, 4u);
  EXPECT_EQ(all.size(), 8u);
}

TEST(bench_routing, sends_everything_to_rank_zero_and_pads_with_no_expert) {
  bench_case c = a_case(routing_kind::all_to_one);
  for (std::int32_t id : choices(c)) EXPECT_LT(id, 16);
  c.experts = 8;  // two of them on rank 0
  auto const ids = choices(c);
  for (std::size_t t = 0; t < ids.size(); t += 6) {
    EXPECT_EQ(ids[t] + ids[t + 1], 1);
    for (std::size_t k = 2; k < 6; ++k) EXPECT_EQ(ids[t + k], -1);
  }
}

TEST(bench_routing, refuses_what_cannot_be_chosen) {
  bench_case c = a_case(routing_kind::uniform);
  c.topk = 65;
  EXPECT_FALSE(make_choices(c, 1));
  c = a_case(routing_kind::group_limited);
  c.experts = 60;
  EXPECT_FALSE(make_choices(c, 1));
}

TEST(bench_routing, visits_each_rank_of_a_token_once_in_order) {
  bench_case c = a_case(routing_kind::uniform);
  c.tokens = 1;
  c.topk = 5;
  routes const r =
      routes_of(c, {63, 0, 1, 48, -1, 20, 20, 21, 22, 23, -1, -1, -1, -1, -1, 0, 16, 32, 48, 63});
  std::vector<std::vector<int>> seen(4);
  for (int s = 0; s < 4; ++s)
    r.for_each_rank(s, 0, [&](int d) { seen[static_cast<std::size_t>(s)].push_back(d); });
  EXPECT_EQ(seen[0], (std::vector<int>{0, 3}));
  EXPECT_EQ(seen[1], (std::vector<int>{1}));
  EXPECT_EQ(seen[2], (std::vector<int>{}));
  EXPECT_EQ(seen[3], (std::vector<int>{0, 1, 2, 3}));
}

TEST(bench_routing, places_rows_by_expert_source_and_token) {
  bench_case c;
  c.ranks = 2;
  c.tokens = 2;
  c.topk = 2;
  c.experts = 4;
  routes const r = routes_of(c, {1, 3, 0, 1, 2, 3, 1, 0});
  places const zero = places_of(r, 0, 0);
  EXPECT_EQ(zero.position, (std::vector<std::int32_t>{2, -1, 0, 3, -1, -1, 4, 1}));
  EXPECT_EQ(zero.end, 5);
  places const one = places_of(r, 1, 0);
  EXPECT_EQ(one.position, (std::vector<std::int32_t>{-1, 1, -1, -1, 0, 2, -1, -1}));
  EXPECT_EQ(one.end, 3);
  EXPECT_EQ(most_rows_of_an_expert(r), 3);
  places const padded = places_of(r, 1, 3);
  EXPECT_EQ(padded.position, (std::vector<std::int32_t>{-1, 3, -1, -1, 0, 4, -1, -1}));
  EXPECT_EQ(padded.end, 5);
}

}  // namespace
