// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Two hops on a memory that delays and reorders every unreleased store: rule R10, with R1 to R7 on
// both hops.

#include "protocol/stepped_exchange.hpp"

#include <gtest/gtest.h>

namespace ferry::protocol_test {
namespace {

void expect_right(run_shape const& shape, int runs) {
  conduct protocol;
  if (FERRY_THREAD_SANITIZER) runs /= 4;
  for (int seed = 1; seed <= runs; ++seed) {
    verdict const v = play(shape, protocol, static_cast<std::uint64_t>(seed));
    ASSERT_EQ(v.what, outcome::right) << to_string(v.what) << ", " << v.text;
  }
}

TEST(two_hops_on_weak_memory, one_remote_source_and_its_relay) {
  expect_right({.ranks = 3, .steps = 12, .ranks_per_node = 2}, 120);
}
TEST(two_hops_on_weak_memory, two_nodes_of_two_ranks) {
  expect_right({.ranks = 4, .steps = 8, .ranks_per_node = 2}, 80);
}
TEST(two_hops_on_weak_memory, a_rank_alone_between_larger_nodes) {
  expect_right({.ranks = 4, .steps = 8, .chunk_tokens = 2, .ranks_per_node = 3}, 80);
}
TEST(two_hops_on_weak_memory, nodes_of_one_rank) {
  expect_right({.ranks = 2, .steps = 12, .ranks_per_node = 1}, 60);
}
TEST(two_hops_on_weak_memory, results_of_every_choice) {
  expect_right({.ranks = 3, .steps = 10, .reduction = reduction::per_choice, .ranks_per_node = 2},
               80);
}
TEST(two_hops_on_weak_memory, experts_that_read_the_inbox) {
  expect_right(
      {.ranks = 3, .steps = 10, .chunk_tokens = 2, .layout = layout::in_place, .ranks_per_node = 2},
      80);
}
TEST(two_hops_on_weak_memory, several_blocks_per_rank) {
  expect_right({.ranks = 3, .blocks = 2, .steps = 6, .max_tokens = 4, .ranks_per_node = 2}, 60);
  expect_right({.ranks = 3, .blocks = 4, .steps = 5, .max_tokens = 4, .ranks_per_node = 2}, 40);
}
TEST(two_hops_on_weak_memory, two_slots_under_way_at_once) {
  expect_right({.ranks = 4,
                .slots = 2,
                .steps = 6,
                .max_tokens = 2,
                .ranks_per_node = 2,
                .release_some = false},
               60);
}

}  // namespace
}  // namespace ferry::protocol_test
