// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What lanes of a team, and teams of a block, do together: the contract of the concept `team`.
#pragma once

#include "contract/contract_case.hpp"

#include <vector>

namespace ferry::test {

class team_contract : public contract_case {};

TEST_P(team_contract, votes_shares_and_sums_among_lanes_and_teams) {
  static constexpr char const* names[] = {"row_scratch",
                                          "broadcast",
                                          "broadcast of 8 bytes",
                                          "ballot",
                                          "any",
                                          "max_over 8",
                                          "max_over all lanes",
                                          "sum_to",
                                          "sync",
                                          "block_all",
                                          "block_sync"};
  static_assert(std::size(names) == static_cast<std::size_t>(team_check::count_));
  contract_place place(where());
  for (lane_grid const grid : grids()) {
    auto const lanes = static_cast<std::size_t>(grid.blocks * grid.teams * place.lanes());
    contract_array<check_count> counts(where(), std::size(names));
    contract_array<std::uint32_t> numbers(where(), lanes);
    queue q = place.make_queue(grid.blocks);
    place
        .run(q, grid,
             check_team{counts.data(), numbers.data(), place.scratch(),
                        contract_place::scratch_stride})
        .value();
    finish(q);
    auto const found = counts.read();
    for (std::size_t i = 0; i < found.size(); ++i) {
      auto const which = static_cast<team_check>(i);
      bool const repeated = which >= team_check::memory_of_lanes;
      bool const absent = which == team_check::largest_of_8 && place.lanes() < 8;
      std::size_t const made = absent ? 0 : lanes * (repeated ? check_team::turns : 1);
      EXPECT_EQ(found[i].made, made) << names[i];
      EXPECT_EQ(found[i].wrong, 0u)
          << names[i] << " on " << grid.blocks << " blocks of " << grid.teams << " teams";
    }
  }
}

}  // namespace ferry::test
