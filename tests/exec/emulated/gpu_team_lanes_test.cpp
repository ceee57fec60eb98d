// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What tests/contract cannot show, because a GPU would only hang: lanes that part.

#include <ferry/exec/gpu/gpu_team.hpp>

#include "kernels/emulated_teams.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;
using testing::HasSubstr;

template <class Width>
class gpu_team_of : public testing::Test {
 protected:
  template <class Body>
  static result<void> run(lane_grid grid, Body const& body) {
    std::vector<std::byte> scratch(16 * 64);
    return run_on_teams<Width::value>(grid, 3, {{}, scratch.data(), 64}, body);
  }
};
using widths = testing::Types<std::integral_constant<int, 32>, std::integral_constant<int, 64>>;
TYPED_TEST_SUITE(gpu_team_of, widths);

TYPED_TEST(gpu_team_of, names_a_barrier_that_not_all_lanes_reach) {
  result<void> const r = this->run({1, 2}, [&](auto const& t) {
    if (t.index() == 1 && t.lane() < 3) return;
    t.sync();
  });
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().message, HasSubstr("at sync of team 1 of block 0"));
}

TYPED_TEST(gpu_team_of, names_a_vote_of_the_block_that_a_team_does_not_take_part_in) {
  result<void> const r = this->run({2, 2}, [&](auto const& t) {
    if (t.block() == 1 && t.index() == 0) return;
    static_cast<void>(t.block_all(true));
  });
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().message, HasSubstr("at block_sync of block 1"));
}

}  // namespace
