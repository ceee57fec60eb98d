// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/weight_pool.hpp"

#include <ferry/deepseek/linear.hpp>

#include "deepseek/on_ranks.hpp"
#include "deepseek/owned_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>

namespace ferry::deepseek {
namespace {

using test::on_ranks;
using test::owned_matrix;
using test::same_bits;

/// A rank's weights of three shapes, and what they make of the same rows.
struct some_products {
  weight_pool pool;
  std::vector<linear> all;

  explicit some_products(std::string const& name, dtype compute = dtype::f32) {
    for (auto [in, out] : {std::pair{64, 96}, {33, 17}, {256, 40}})
      all.push_back(
          linear::pack(owned_matrix(name, out, in).view(), {.compute = compute, .pool = &pool})
              .value());
  }
  std::vector<owned_matrix> results() const {
    std::vector<owned_matrix> made;
    for (linear const& one : all) {
      owned_matrix const x("x", 21, one.in_features());
      made.emplace_back(21, one.out_features());
      one.apply(x.read(), made.back().view()).value();
    }
    return made;
  }
};

void expect_equal(std::vector<owned_matrix> const& a, std::vector<owned_matrix> const& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(same_bits(a[i].values.data(), b[i].values.data(), a[i].rows * a[i].columns)) << i;
}

TEST(weight_pool, keeps_equal_weights_once_and_computes_the_same) {
  for (dtype const compute : {dtype::f32, dtype::bf16}) {
    std::array<std::vector<void const*>, 3> places;
    on_ranks(3, [&](group const& ranks) {
      some_products mine("w", compute);
      auto const before = mine.results();
      mine.pool.share(ranks).value();
      places[static_cast<std::size_t>(ranks.rank())] = mine.pool.places();
      expect_equal(mine.results(), before);
      ranks.barrier().value();
    });
    ASSERT_EQ(places[0].size(), 3u);
    EXPECT_EQ(places[1], places[0]);
    EXPECT_EQ(places[2], places[0]);
    EXPECT_EQ(std::set(places[0].begin(), places[0].end()).size(), 3u);
  }
}

TEST(weight_pool, leaves_a_rank_what_differs) {
  std::array<std::vector<void const*>, 3> places;
  on_ranks(3, [&](group const& ranks) {
    some_products mine(ranks.rank() == 1 ? "other" : "w");
    auto const before = mine.results();
    mine.pool.share(ranks).value();
    places[static_cast<std::size_t>(ranks.rank())] = mine.pool.places();
    expect_equal(mine.results(), before);
    ranks.barrier().value();
  });
  EXPECT_EQ(places[2], places[0]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NE(places[1][i], places[0][i]);
}

TEST(weight_pool, shares_among_ranks_that_pack_alike) {
  std::array<std::vector<void const*>, 4> places;
  on_ranks(4, [&](group const& ranks) {
    some_products mine("w");
    if (ranks.rank() % 2 == 1)
      mine.all.push_back(
          linear::pack(owned_matrix("w", 8, 8).view(), {.pool = &mine.pool}).value());
    auto const before = mine.results();
    mine.pool.share(ranks).value();
    places[static_cast<std::size_t>(ranks.rank())] = mine.pool.places();
    expect_equal(mine.results(), before);
    ranks.barrier().value();
  });
  EXPECT_EQ(places[2], places[0]);
  EXPECT_EQ(places[3], places[1]);
  EXPECT_NE(places[1][0], places[0][0]);
}

TEST(weight_pool, has_nothing_to_do_for_one_rank_or_without_weights) {
  on_ranks(1, [](group const& ranks) {
    some_products mine("w");
    auto const before = mine.pool.places();
    mine.pool.share(ranks).value();
    EXPECT_EQ(mine.pool.places(), before);
  });
  on_ranks(2, [](group const& ranks) { weight_pool().share(ranks).value(); });
}

}  // namespace
}  // namespace ferry::deepseek
