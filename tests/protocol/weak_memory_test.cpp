// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The exchange's kernels and host code on a memory that delays and reorders every unreleased store:
// rules R1 to R7, on every schedule tried.

#include "protocol/stepped_exchange.hpp"

#include <gtest/gtest.h>

namespace ferry::protocol_test {
namespace {

void expect_right(run_shape const& shape, int runs) {
  conduct protocol;
  // Handing the baton over is slow there, and nothing runs at the same time that could race.
  if (FERRY_THREAD_SANITIZER) runs /= 4;
  for (int seed = 1; seed <= runs; ++seed) {
    verdict const v = play(shape, protocol, static_cast<std::uint64_t>(seed));
    ASSERT_EQ(v.what, outcome::right) << to_string(v.what) << ", " << v.text;
  }
}

TEST(weak_memory, two_ranks) {
  expect_right({.chunk_tokens = 1}, 240);
}
TEST(weak_memory, two_ranks_with_chunks_of_two_tokens) {
  expect_right({.max_tokens = 5, .chunk_tokens = 2}, 160);
}
TEST(weak_memory, three_ranks) {
  expect_right({.ranks = 3, .steps = 12, .chunk_tokens = 2}, 160);
}
TEST(weak_memory, one_rank_that_writes_to_itself) {
  expect_right({.ranks = 1}, 80);
}
TEST(weak_memory, results_of_every_choice) {
  expect_right({.reduction = reduction::per_choice}, 160);
}
TEST(weak_memory, experts_that_read_the_inbox) {
  expect_right({.chunk_tokens = 2, .layout = layout::in_place}, 160);
}
TEST(weak_memory, padded_rows) {
  expect_right({.max_tokens = 2, .layout = layout::padded}, 80);
}
TEST(weak_memory, two_slots_under_way_at_once) {
  expect_right({.slots = 2, .steps = 10, .max_tokens = 2, .release_some = false}, 160);
}
TEST(weak_memory, steps_in_rounds) {
  expect_right({.steps = 10, .max_tokens = 5, .round_tokens = 2}, 160);
  expect_right({.ranks = 3, .steps = 8, .max_tokens = 4, .chunk_tokens = 2, .round_tokens = 2}, 80);
}
TEST(weak_memory, steps_in_rounds_with_results_of_every_choice) {
  expect_right(
      {.steps = 10, .max_tokens = 4, .round_tokens = 1, .reduction = reduction::per_choice}, 80);
}
TEST(weak_memory, several_blocks_per_rank) {
  expect_right({.blocks = 2, .steps = 10, .max_tokens = 4}, 120);
  expect_right({.blocks = 3, .steps = 6, .max_tokens = 4}, 80);
  expect_right({.blocks = 2, .steps = 6, .max_tokens = 4, .round_tokens = 2}, 80);
  expect_right({.blocks = 4, .steps = 6, .max_tokens = 4, .chunk_tokens = 2}, 80);
}
// A header word keeps 40 bits of the epoch, an arrived word 48: these runs go over both edges.
TEST(weak_memory, epochs_whose_upper_bits_do_not_fit_a_word) {
  for (int bits : {32, 40, 48}) {
    std::uint64_t const edge = std::uint64_t{1} << bits;
    expect_right({.steps = 10, .epochs_before = edge - 4}, 40);
    expect_right({.steps = 8, .max_tokens = 4, .round_tokens = 2, .epochs_before = edge - 12}, 40);
    expect_right({.steps = 6, .max_tokens = 4, .round_tokens = 2, .epochs_before = edge + 3}, 20);
  }
}

}  // namespace
}  // namespace ferry::protocol_test
