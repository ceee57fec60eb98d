// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/gpu/gpu_team.hpp>

#include <ferry/exec/emulated/emulated_device.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <thread>
#include <vector>

namespace {

using namespace ferry;
using testing::HasSubstr;

template <int Lanes>
struct played {
  using team = gpu_team<emulated_device<Lanes>>;
  static_assert(ferry::team<team>);
  status_record status{};
  std::uint32_t failed = 0, told = 0;
  gpu_waits waits{.status = &status,
                  .failed = &failed,
                  .timeout = 50'000'000,
                  .patience = 10'000'000,
                  .slot = 7,
                  .told = &told};
  std::vector<std::byte> scratch = std::vector<std::byte>(16 * 64);

  template <class Body>
  result<void> run(lane_grid grid, Body const& body) {
    std::vector<gpu_block_memory> memory(static_cast<std::size_t>(grid.blocks));
    lane_launch lanes(grid, Lanes, 3);
    return lanes.run([&] {
      team const t(grid.blocks, grid.teams, waits, memory[static_cast<std::size_t>(lanes.block())],
                   scratch.data(), 64);
      body(t);
    });
  }
};

template <class Width>
class gpu_team_of : public testing::Test {};
using widths = testing::Types<std::integral_constant<int, 32>, std::integral_constant<int, 64>>;
TYPED_TEST_SUITE(gpu_team_of, widths);

TYPED_TEST(gpu_team_of, has_the_lanes_teams_and_blocks_of_its_grid) {
  constexpr int lanes = TypeParam::value;
  played<lanes> p;
  std::vector<int> visits(3 * 2 * lanes);
  p.run({3, 2}, [&](auto const& t) {
     EXPECT_EQ(t.blocks(), 3);
     EXPECT_EQ(t.count(), 2);
     EXPECT_EQ(t.leader(), t.lane() == 0);
     EXPECT_EQ(t.row_scratch(), p.scratch.data() + 64 * (t.block() * 2 + t.index()));
     ++visits[static_cast<std::size_t>((t.block() * 2 + t.index()) * lanes + t.lane())];
   }).value();
  EXPECT_EQ(visits, std::vector<int>(visits.size(), 1));
}

TYPED_TEST(gpu_team_of, votes_shares_and_sums) {
  constexpr int lanes = TypeParam::value;
  played<lanes> p;
  p.run({2, 2}, [&](auto const& t) {
     std::uint64_t const wide = (std::uint64_t{1} << 63) + static_cast<std::uint64_t>(t.lane());
     EXPECT_EQ(t.broadcast(wide, lanes - 1), (std::uint64_t{1} << 63) + lanes - 1);
     EXPECT_EQ(t.broadcast(static_cast<float>(t.lane()), 3), 3.0f);
     auto const odd = t.ballot(t.lane() % 2 == 1);
     EXPECT_EQ(std::popcount(odd), lanes / 2);
     EXPECT_TRUE(t.any(t.lane() == 5));
     EXPECT_FALSE(t.any(false));
     EXPECT_EQ(t.template max_over<8>(static_cast<float>(t.lane())),
               static_cast<float>(t.lane() / 8 * 8 + 7));
     EXPECT_EQ(t.template max_over<lanes>(-static_cast<float>(t.lane())), 0.0f);
     std::int64_t const big = std::int64_t{1} << 33;
     EXPECT_EQ(t.sum_to(big + t.lane()), (t.lane() + 1) * big + t.lane() * (t.lane() + 1) / 2);
   }).value();
}

TYPED_TEST(gpu_team_of, agrees_in_a_block_many_times_in_a_row) {
  played<TypeParam::value> p;
  p.run({2, 3}, [&](auto const& t) {
     for (int turn = 0; turn < 12; ++turn) {
       EXPECT_TRUE(t.block_all(true)) << turn;
       EXPECT_EQ(t.block_all(t.index() != turn % 3 || t.lane() != turn), false) << turn;
       EXPECT_EQ(t.block_all(t.block() == 0), t.block() == 0) << turn;
     }
   }).value();
}

TYPED_TEST(gpu_team_of, names_a_barrier_that_not_all_lanes_reach) {
  played<TypeParam::value> p;
  result<void> const r = p.run({1, 2}, [&](auto const& t) {
    if (t.index() == 1 && t.lane() < 3) return;
    t.sync();
  });
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().message, HasSubstr("at sync of team 1 of block 0"));
}

TYPED_TEST(gpu_team_of, waits_for_a_word_of_another_thread) {
  played<TypeParam::value> p;
  std::uint64_t word = 0;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic_ref(word).store(std::uint64_t{3} << 16 | 5, std::memory_order_release);
  });
  p.waits.timeout = 20'000'000'000;
  p.run({1, 2}, [&](auto const& t) {
     std::uint64_t seen = 0;
     EXPECT_TRUE(t.wait({flag::arrived, 1, 0, 3}, &word, seen));
     EXPECT_EQ(seen & 0xFFFF, 5u);
   }).value();
  other.join();
  EXPECT_EQ(p.told, 0u);
}

TYPED_TEST(gpu_team_of, records_a_word_that_did_not_come_and_gives_up_everywhere) {
  played<TypeParam::value> p;
  std::uint64_t word = std::uint64_t{2} << 24;
  int arrived = 0;
  p.run({2, 1}, [&](auto const& t) {
     std::uint64_t seen = 0;
     arrived += t.wait({flag::header, 4, -1, 3}, &word, seen);
     EXPECT_TRUE(t.failed());
   }).value();
  EXPECT_EQ(arrived, 0);
  EXPECT_EQ(p.told, 1u);
  EXPECT_EQ(p.failed, 1u);
  EXPECT_EQ(p.status.failed, status_record::complete);
  EXPECT_EQ(p.status.record.code, error_code::timeout);
  EXPECT_EQ(p.status.record.rank, 4);
  EXPECT_EQ(p.status.record.slot, 7);
  EXPECT_EQ(p.status.record.seen, 2u);
  EXPECT_EQ(p.status.record.wait.epoch, 3u);
  EXPECT_EQ(p.status.waiting, 0u);
}

TYPED_TEST(gpu_team_of, says_whom_it_waits_for_and_leaves_when_the_host_says_so) {
  played<TypeParam::value> p;
  p.waits.timeout = 60'000'000'000;
  std::uint64_t word = 0, waited_for = 0;
  std::thread host([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    waited_for = std::atomic_ref(p.status.waiting).load();
    std::atomic_ref(p.failed).store(1);
  });
  p.run({1, 1}, [&](auto const& t) {
     std::uint64_t seen = 0;
     EXPECT_FALSE(t.wait({flag::done, 2, -1, 1}, &word, seen));
   }).value();
  host.join();
  EXPECT_EQ(waited_for, 3u);
  EXPECT_EQ(p.told, 0u) << "nothing was recorded";
}

}  // namespace
