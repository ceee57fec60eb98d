// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What every executor keeps to: one suite, instantiated for each of them.
#pragma once

#include <ferry/exec/executor.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace ferry::test {

/// `Maker::make(teams)` returns a pointer to an executor of that many teams, and
/// `Maker::index(args...)`, `Maker::count(args...)` tell a kernel which team it is, and of how
/// many.
template <class Maker>
class executor_contract : public ::testing::Test {
 protected:
  template <class Body>
  static void with_1_to_4_teams(Body const& body) {
    for (int teams = 1; teams <= 4; ++teams) {
      SCOPED_TRACE(std::to_string(teams) + " teams");
      auto executor = Maker::make(teams);
      ASSERT_EQ(executor->teams(), teams);
      body(*executor, teams);
    }
  }
};
TYPED_TEST_SUITE_P(executor_contract);

TYPED_TEST_P(executor_contract, calls_every_team_once) {
  this->with_1_to_4_teams([](auto& executor, int teams) {
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(teams));
    std::atomic<int> wrong{0};
    executor.run([&](auto const&... team) {
      if (TypeParam::count(team...) != teams) ++wrong;
      ++calls[static_cast<std::size_t>(TypeParam::index(team...))];
    });
    EXPECT_EQ(wrong, 0);
    for (auto const& c : calls) EXPECT_EQ(c, 1);
  });
}

TYPED_TEST_P(executor_contract, shows_what_teams_wrote_after_run) {
  this->with_1_to_4_teams([](auto& executor, int teams) {
    // No atomics: the end of `run` is what makes these visible.
    std::vector<int> written(static_cast<std::size_t>(teams));
    for (int round = 1; round <= 200; ++round) {
      executor.run([&](auto const&... team) {
        written[static_cast<std::size_t>(TypeParam::index(team...))] = round;
      });
      ASSERT_EQ(written, std::vector<int>(static_cast<std::size_t>(teams), round));
    }
  });
}

TYPED_TEST_P(executor_contract, orders_a_run_after_the_ones_before_it) {
  this->with_1_to_4_teams([](auto& executor, int teams) {
    std::vector<int> from(static_cast<std::size_t>(teams)), to(from.size());
    for (int round = 1; round <= 100; ++round) {
      executor.run([&](auto const&... team) {
        ++from[static_cast<std::size_t>(TypeParam::index(team...))];
      });
      // Every team reads what another one wrote in the run before.
      executor.run([&](auto const&... team) {
        auto const i = static_cast<std::size_t>(TypeParam::index(team...));
        to[i] = from[(i + 1) % from.size()];
      });
    }
    EXPECT_EQ(to, std::vector<int>(static_cast<std::size_t>(teams), 100));
  });
}

TYPED_TEST_P(executor_contract, has_all_teams_under_way_at_once) {
  this->with_1_to_4_teams([](auto& executor, int teams) {
    std::atomic<int> here{0}, missing{0};
    executor.run([&](auto const&...) {
      ++here;
      auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (here < teams)
        if (std::chrono::steady_clock::now() > end)
          return void(++missing);
        else
          std::this_thread::yield();
    });
    EXPECT_EQ(missing, 0);
  });
}

TYPED_TEST_P(executor_contract, takes_turns_for_calls_from_several_threads) {
  this->with_1_to_4_teams([](auto& executor, int teams) {
    std::vector<long> sums(static_cast<std::size_t>(teams));
    std::atomic<int> overlaps{0}, running{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 3; ++thread)
      threads.emplace_back([&] {
        for (int round = 0; round < 50; ++round)
          executor.run([&](auto const&... team) {
            if (running.fetch_add(1) >= teams) ++overlaps;
            if (teams > 1) ++sums[static_cast<std::size_t>(TypeParam::index(team...))];
            running.fetch_sub(1);
          });
      });
    for (std::thread& t : threads) t.join();
    if (teams == 1) return;  // a single team is whoever calls
    EXPECT_EQ(overlaps, 0);
    EXPECT_EQ(sums, std::vector<long>(static_cast<std::size_t>(teams), 150));
  });
}

REGISTER_TYPED_TEST_SUITE_P(executor_contract, calls_every_team_once,
                            shows_what_teams_wrote_after_run, orders_a_run_after_the_ones_before_it,
                            has_all_teams_under_way_at_once,
                            takes_turns_for_calls_from_several_threads);

}  // namespace ferry::test
