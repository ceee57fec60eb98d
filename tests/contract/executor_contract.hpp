// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What starting teams must keep to, on every device: one suite, instantiated for each of them.
#pragma once

#include "contract/contract_case.hpp"

#include <thread>
#include <vector>

namespace ferry::test {

class executor_contract : public contract_case {};

TEST_P(executor_contract, calls_every_lane_of_every_team_once) {
  contract_place place(where());
  for (lane_grid const grid : grids()) {
    auto const all = static_cast<std::size_t>(grid.blocks * grid.teams * place.lanes());
    contract_array<std::uint32_t> visits(where(), all), misplaced(where(), 1);
    queue q = place.make_queue(grid.blocks);
    place.run(q, grid, visit_lanes{visits.data(), misplaced.data(), grid.blocks, grid.teams})
        .value();
    finish(q);
    EXPECT_EQ(misplaced.read().front(), 0u) << grid.blocks << " blocks of " << grid.teams;
    EXPECT_EQ(visits.read(), std::vector<std::uint32_t>(all, 1));
  }
}

TEST_P(executor_contract, shows_what_teams_wrote_once_it_is_done) {
  contract_place place(where());
  for (lane_grid const grid : grids()) {
    auto const teams = static_cast<std::size_t>(grid.blocks * grid.teams);
    contract_array<std::uint32_t> at(where(), teams);
    queue q = place.make_queue(grid.blocks);
    for (std::uint32_t turn = 1; turn <= static_cast<std::uint32_t>(turns(100)); ++turn) {
      // No atomics: the end of the launch is what makes these visible.
      place.run(q, grid, count_up{at.data()}).value();
      finish(q);
      ASSERT_EQ(at.read(), std::vector<std::uint32_t>(teams, turn));
    }
  }
}

TEST_P(executor_contract, orders_a_launch_after_the_ones_before_it) {
  contract_place place(where());
  for (lane_grid const grid : grids()) {
    auto const teams = static_cast<std::size_t>(grid.blocks * grid.teams);
    contract_array<std::uint32_t> one(where(), teams), other(where(), teams);
    queue q = place.make_queue(grid.blocks);
    // Every team reads what another one wrote in the launch before.
    int const launches = 2 * turns(100);
    for (int i = 0; i < launches; i += 2) {
      place.run(q, grid, pass_on{one.data(), other.data()}).value();
      place.run(q, grid, pass_on{other.data(), one.data()}).value();
    }
    finish(q);
    EXPECT_EQ(one.read(), std::vector<std::uint32_t>(teams, static_cast<std::uint32_t>(launches)));
  }
}

TEST_P(executor_contract, has_all_teams_under_way_at_once) {
  contract_place place(where());
  for (lane_grid const grid : grids()) {
    contract_array<std::uint64_t> here(where(), 1, memory_kind::flags);
    contract_array<std::uint32_t> missing(where(), 1);
    queue q = place.make_queue(grid.blocks);
    place.run(q, grid, meet{here.data(), missing.data()}).value();
    finish(q);
    EXPECT_EQ(here.read().front(), static_cast<std::uint64_t>(grid.blocks * grid.teams));
    EXPECT_EQ(missing.read().front(), 0u);
  }
}

TEST_P(executor_contract, takes_launches_of_several_threads_in_turn) {
  contract_place place(where());
  for (lane_grid const grid : grids()) {
    auto const teams = static_cast<std::size_t>(grid.blocks * grid.teams);
    contract_array<std::uint32_t> at(where(), teams);
    queue q = place.make_queue(grid.blocks);
    int const each = turns(50);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread)
      threads.emplace_back([&] {
        for (int i = 0; i < each; ++i) place.run(q, grid, count_up{at.data()}).value();
      });
    for (std::thread& t : threads) t.join();
    finish(q);
    EXPECT_EQ(at.read(), std::vector<std::uint32_t>(teams, static_cast<std::uint32_t>(3 * each)));
  }
}

}  // namespace ferry::test
