// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "balance/visits.hpp"

#include "balance/generated_routing.hpp"

#include <gtest/gtest.h>

#include <set>

namespace ferry::balance {
namespace {

std::int64_t counted(std::vector<std::vector<int>> const& tokens, std::vector<int> const& rank_of,
                     std::vector<int> const& place_of) {
  std::int64_t total = 0;
  for (auto const& items : tokens) {
    std::set<int> places;
    for (int item : items)
      places.insert(place_of[static_cast<std::size_t>(rank_of[static_cast<std::size_t>(item)])]);
    total += static_cast<std::int64_t>(places.size());
  }
  return total;
}

TEST(visits, agree_with_a_count_from_scratch_after_every_swap) {
  test::random_source random(11);
  constexpr int items = 20, ranks = 5;
  std::vector<int> const nodes = {0, 0, 1, 1, 1};
  std::vector<std::vector<int>> tokens(60);
  for (auto& t : tokens)
    for (int i = 0; i < items; ++i)
      if (random.below(5) == 0) t.push_back(i);
  std::vector<int> rank_of;
  for (int i = 0; i < items; ++i) rank_of.push_back(i % ranks);
  for (auto const& place_of : {std::vector<int>{0, 1, 2, 3, 4}, nodes}) {
    auto now = rank_of;
    visits v(tokens, now, place_of);
    ASSERT_EQ(v.total(), counted(tokens, now, place_of));
    for (int n = 0; n < 300; ++n) {
      int const a = random.below(items), b = random.below(items);
      if (a == b) continue;
      auto const before = v.total();
      int const change = v.change(a, b);
      EXPECT_LE(v.change_at_least(a, b), change);
      std::swap(now[static_cast<std::size_t>(a)], now[static_cast<std::size_t>(b)]);
      if (n % 3 == 0) {
        v.swap_counts(a, b);
        v.recount();
      } else {
        v.swap(a, b);
      }
      ASSERT_EQ(v.total(), before + change) << n;
      ASSERT_EQ(v.total(), counted(tokens, now, place_of)) << n;
    }
  }
}

}  // namespace
}  // namespace ferry::balance
