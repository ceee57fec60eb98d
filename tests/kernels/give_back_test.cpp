// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/give_back.hpp>

#include "kernels/three_ranks.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

void dispatch(three_ranks& all) {
  all.send(0, {2, 3, 0, -1});  // token 0 to rank 1, twice; token 1 to rank 0
  all.send(1, {-1, 2});
  all.send(2, {});
  for (int r = 0; r < 3; ++r) all.receive(r);
}
// Rank 1 has expert 2: source 0, source 1; expert 3: source 0.
std::vector<float> const made = {100, 200, 1000};

float returned(three_ranks& all, int source, int by, int token) {
  return *all.at<float>(source, all.frame().at(slot_field::returned, by, token));
}

TEST(give_back, sums_weighted_rows_of_a_token_into_one) {
  three_ranks all;
  dispatch(all);
  all.give_back(1, made);
  EXPECT_EQ(returned(all, 0, 1, 0), 1 * 100 + 1.5f * 1000);
  EXPECT_EQ(returned(all, 0, 1, 1), 0.0f) << "token 1 was not here";
  EXPECT_EQ(returned(all, 1, 1, 0), 1.5f * 200);
  EXPECT_EQ(returned(all, 2, 1, 0), 0.0f);
  EXPECT_EQ(all.tally_of(1, tally::returned_bytes), 4u);
  EXPECT_EQ(all.tally_of(1, tally::returned_self_bytes), 4u);
}

TEST(give_back, returns_each_choice_unweighted_at_its_place) {
  three_ranks all({.reduction = reduction::per_choice});
  dispatch(all);
  all.give_back(1, made);
  auto const at = [&](int source, std::size_t item) {
    return *all.at<float>(source, all.frame().at(slot_field::returned, item));
  };
  EXPECT_EQ(at(0, 0), 100.0f);
  EXPECT_EQ(at(0, 1), 1000.0f);
  EXPECT_EQ(at(0, 2), 0.0f) << "another rank's choice";
  EXPECT_EQ(at(1, 0), 0.0f);
  EXPECT_EQ(at(1, 1), 200.0f);
}

TEST(give_back, says_done_to_all_and_back_for_chunks_with_rows) {
  three_ranks all;
  dispatch(all);
  all.give_back(1, made);
  for (int d = 0; d < 3; ++d) EXPECT_EQ(all.done(d, 1), 1u) << "also to one that sent nothing";
  EXPECT_EQ(all.back(0, 1, 0), 1u);
  EXPECT_EQ(all.back(1, 1, 0), 1u);
  EXPECT_EQ(all.back(2, 1, 0), 0u);
  EXPECT_EQ(all.back(0, 1, 1), 0u);
}

TEST(give_back, says_only_done_when_a_step_is_released) {
  three_ranks all;
  dispatch(all);
  all.ranks.run(1, return_rows{.frame = all.ranks.rank(1).frame(), .credit_only = true});
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(all.done(d, 1), 1u);
    EXPECT_EQ(all.back(d, 1, 0), 0u);
    EXPECT_EQ(returned(all, d, 1, 0), 0.0f);
  }
}

TEST(give_back, returns_zeros_for_what_had_no_room) {
  three_ranks all({.layout = layout::padded, .reduction = reduction::per_choice, .capacity = 1});
  dispatch(all);
  all.give_back(1, {100, 1000});
  EXPECT_EQ(*all.at<float>(1, all.frame().at(slot_field::returned, 1)), 0.0f);
  EXPECT_EQ(all.back(1, 1, 0), 1u);
  EXPECT_EQ(*all.at<float>(0, all.frame().at(slot_field::returned, 1)), 1000.0f);
}

// R9: after a failed wait nothing is stored in any window.
TEST(give_back, stores_nothing_once_a_wait_has_failed) {
  three_ranks all;
  dispatch(all);
  all.ranks.rank(1).waits->fail({error_code::timeout, 2, {flag::header, 2, -1, 1}, 0, 0});
  all.give_back(1, made);
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(all.done(d, 1), 0u);
    EXPECT_EQ(returned(all, d, 1, 0), 0.0f);
  }
}

}  // namespace
