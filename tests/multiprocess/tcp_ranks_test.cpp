// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/group.hpp>

#include "multiprocess/machine_state.hpp"
#include "multiprocess/ranks.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;
using ferry::error_code;
using ferry::presence;
using ferry::test::run_ranks;

bool blames(ferry::error const& e, int rank) {
  return e.message.find("rank " + std::to_string(rank)) != std::string::npos;
}

TEST(tcp_processes, gather_between_eight_processes) {
  auto const report = run_ranks(8, [](int rank, std::string const& address) {
    auto const group = ferry::join(ferry::tcp(address, rank, 8)).value();
    EXPECT_EQ(group.ranks_on_this_machine(), 8);
    for (int i = 0; i < 20; ++i) {
      auto const mine = std::byte(rank + i);
      auto const all = group.all_gather({&mine, 1}).value();
      for (int peer = 0; peer < 8; ++peer)
        EXPECT_EQ(all[static_cast<std::size_t>(peer)], ferry::bytes{std::byte(peer + i)});
    }
  });
  EXPECT_TRUE(report.ok()) << report.describe();
}

TEST(tcp_processes, join_by_the_environment) {
  auto const report = run_ranks(3, [](int rank, std::string const& address) {
    auto const colon = address.find(':');
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", "3", 1);
    ::setenv("MASTER_ADDR", address.substr(0, colon).c_str(), 1);
    ::setenv("MASTER_PORT", address.substr(colon + 1).c_str(), 1);
    ASSERT_TRUE(ferry::tcp_environment_is_set());
    auto const group = ferry::join(ferry::tcp_from_environment()).value();
    EXPECT_EQ(group.rank(), rank);
    EXPECT_TRUE(group.barrier());
  });
  EXPECT_TRUE(report.ok()) << report.describe();
}

TEST(tcp_processes, a_killed_rank_is_gone_within_moments) {
  for (int victim : {0, 2}) {
    auto const report = run_ranks(3, [&](int rank, std::string const& address) {
      auto const group = ferry::join(ferry::tcp(address, rank, 3)).value();
      group.barrier().value();
      if (rank == victim) ::raise(SIGKILL);
      auto const start = clock_type::now();
      while (group.look(victim) == presence::here && clock_type::now() - start < 2s)
        std::this_thread::sleep_for(1ms);
      EXPECT_EQ(group.look(victim), presence::gone);
      EXPECT_LT(clock_type::now() - start, 500ms);
      auto const outcome = group.barrier();
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().code, error_code::unreachable);
      EXPECT_TRUE(blames(outcome.error(), victim)) << outcome.error().message;
      std::this_thread::sleep_for(50ms);
    });
    for (int rank = 0; rank < 3; ++rank)
      EXPECT_TRUE(rank == victim || report.ranks[static_cast<std::size_t>(rank)].ok())
          << report.describe();
  }
}

TEST(tcp_processes, a_rank_killed_inside_a_collective_is_named_by_all) {
  ferry::test::rank_processes ranks(4, [](int rank, std::string const& address) {
    auto const group = ferry::join(ferry::tcp(address, rank, 4)).value();
    if (rank == 3) std::this_thread::sleep_for(10s);
    auto const start = clock_type::now();
    auto const outcome = group.barrier();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, error_code::unreachable);
    EXPECT_TRUE(blames(outcome.error(), 3)) << outcome.error().message;
    EXPECT_LT(clock_type::now() - start, 5s);
  });
  std::this_thread::sleep_for(500ms);
  ranks.send_signal(3, SIGKILL);
  auto const report = ranks.wait(8s);
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(report.ranks[static_cast<std::size_t>(rank)].ok()) << report.describe();
}

TEST(tcp_processes, a_rank_killed_while_it_joins_is_named) {
  ferry::test::rank_processes ranks(3, [](int rank, std::string const& address) {
    if (rank == 2) std::this_thread::sleep_for(10s);  // so the others wait
    auto const group = ferry::join(ferry::tcp(address, rank, 3), {.timeout = 5s});
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, error_code::unreachable) << group.error().message;
    EXPECT_TRUE(blames(group.error(), 1)) << group.error().message;
  });
  std::this_thread::sleep_for(500ms);
  ranks.send_signal(1, SIGKILL);
  std::this_thread::sleep_for(300ms);
  ranks.send_signal(2, SIGKILL);
  auto const report = ranks.wait(4s);
  EXPECT_TRUE(report.ranks[0].ok()) << report.describe();
}

TEST(tcp_processes, a_rank_that_stops_is_late_and_not_gone) {
  ferry::test::rank_processes ranks(2, [](int rank, std::string const& address) {
    auto const group = ferry::join(ferry::tcp(address, rank, 2), {.timeout = 500ms}).value();
    if (rank == 1) ::raise(SIGSTOP);
    auto const outcome = group.barrier();
    if (rank == 1) return;
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, error_code::timeout);
    EXPECT_TRUE(blames(outcome.error(), 1));
    EXPECT_EQ(group.look(1), presence::here);
  });
  auto const report = ranks.wait(3s);
  EXPECT_TRUE(report.ranks[0].ok()) << report.describe();
}

TEST(tcp_processes, descriptors_are_closed_with_the_group) {
  auto const report = run_ranks(3, [](int rank, std::string const& address) {
    auto const before = ferry::test::open_descriptors();
    {
      auto const group = ferry::join(ferry::tcp(address, rank, 3)).value();
      EXPECT_EQ(ferry::test::open_descriptors(), before + 2) << "a connection for each peer";
    }
    EXPECT_EQ(ferry::test::open_descriptors(), before);
  });
  EXPECT_TRUE(report.ok()) << report.describe();
}

}  // namespace
