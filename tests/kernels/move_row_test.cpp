// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/move_row.hpp>

#include "transport/team_doubles.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;

template <class Team>
void moves(std::vector<Team> const& lanes, bool exact) {
  alignas(16) static std::byte from[9000], to[9000];
  for (std::size_t i = 0; i < sizeof from; ++i) from[i] = static_cast<std::byte>(i * 5 + 3);
  for (std::size_t bytes : {1u, 16u, 17u, 512u, 2047u, 2048u, 2064u, 8200u}) {
    std::fill(std::begin(to), std::end(to), std::byte{0});
    for (Team const& t : lanes) move_row(t, to, from, bytes);
    std::size_t const end = exact ? bytes : round_up(bytes, row_align);
    for (std::size_t i = 0; i < sizeof to; ++i)
      ASSERT_EQ(to[i], i < end ? from[i] : std::byte{0}) << bytes << " " << i;
    std::fill(std::begin(to), std::end(to), std::byte{0});
    for (Team const& t : lanes) move_scales(t, to, from, bytes);
    std::size_t const words = exact ? bytes : round_up(bytes, std::size_t{4});
    for (std::size_t i = 0; i < sizeof to; ++i)
      ASSERT_EQ(to[i], i < words ? from[i] : std::byte{0}) << bytes << " " << i;
  }
}

TEST(move_row, copies_whole_pieces_with_many_lanes) {
  std::vector<test::lane_of<32>> lanes;
  for (int l = 0; l < 32; ++l) lanes.emplace_back(l);
  moves(lanes, false);
}

TEST(move_row, copies_no_more_than_the_row_with_one_lane) {
  moves(std::vector<test::idle_team>(1), true);
}

}  // namespace
