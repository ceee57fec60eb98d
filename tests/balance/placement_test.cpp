// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/balance/placement.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry {
namespace {

using testing::HasSubstr;

TEST(placement, contiguous_is_the_numbering_of_an_exchange) {
  auto const where = contiguous_placement(2, 7, 3, 2).value();
  EXPECT_THAT(where.layer(1), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
  for (int e = 0; e < 7; ++e) EXPECT_EQ(where.rank_of(e), owner_of(e, 3, 7));
  EXPECT_EQ(where.slots_of(0) + where.slots_of(1) + where.slots_of(2), 7);
  EXPECT_EQ(where.node_of(0), 0);
  EXPECT_EQ(where.node_of(2), 1);
}

TEST(placement, may_leave_ranks_without_slots) {
  auto const where = contiguous_placement(1, 3, 8).value();
  int slots = 0;
  for (int r = 0; r < 8; ++r) slots += where.slots_of(r);
  EXPECT_EQ(slots, 3);
  EXPECT_TRUE(validate(where));
}

TEST(placement, is_refused_where_an_expert_is_missing_twice_on_a_rank_or_out_of_range) {
  placement where{1, 3, 2, 1, 4, {0, 1, 2, 0}};
  EXPECT_TRUE(validate(where));
  where.experts = {0, 0, 2, 1};
  EXPECT_THAT(validate(where).error().message, HasSubstr("rank 0 holds expert 0 twice"));
  where.experts = {0, 1, 0, 1};
  EXPECT_THAT(validate(where).error().message, HasSubstr("no slot holds expert 2"));
  where.experts = {0, 1, 2, 3};
  EXPECT_THAT(validate(where).error().message, HasSubstr("slot 3 holds expert 3"));
  where.experts = {0, 1, 2, -1};
  EXPECT_FALSE(validate(where));
}

TEST(placement, is_refused_with_wrong_sizes) {
  EXPECT_THAT(validate({1, 3, 2, 1, 4, {0, 1, 2}}).error().message, HasSubstr("3 entries"));
  EXPECT_THAT(validate({1, 3, 2, 1, 2, {0, 1}}).error().message,
              HasSubstr("2 slots cannot hold 3 experts"));
  EXPECT_THAT(validate({1, 3, 2, 3, 3, {0, 1, 2}}).error().message,
              HasSubstr("3 nodes of 2 ranks"));
  EXPECT_FALSE(contiguous_placement(0, 3, 2));
  EXPECT_FALSE(contiguous_placement(1, 3, 0));
}

TEST(placement, counts_what_has_to_be_copied) {
  placement const from{1, 4, 2, 1, 4, {0, 1, 2, 3}};
  placement to = from;
  to.experts = {1, 0, 3, 2};  // only slots within a rank change
  EXPECT_EQ(moved_experts(from, to).value(), 0);
  to.experts = {0, 2, 1, 3};
  EXPECT_EQ(moved_experts(from, to).value(), 2);
  placement const more{1, 4, 2, 1, 6, {0, 1, 2, 2, 3, 0}};
  EXPECT_EQ(moved_experts(from, more).value(), 2);  // 2 to rank 0, and 0 to rank 1
  EXPECT_FALSE(moved_experts(from, contiguous_placement(2, 4, 2).value()));
}

}  // namespace
}  // namespace ferry
