// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/emulated/emulated_team.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <thread>

namespace {

using namespace ferry;
using testing::HasSubstr;

struct nothing {};

template <int Lanes>
struct played {
  status_record status{};
  std::uint32_t failed = 0, told = 0;
  emulated_waits waits{
      &status, &failed, &told, std::chrono::milliseconds(50), std::chrono::milliseconds(10), 7};
  std::vector<std::byte> scratch = std::vector<std::byte>(16 * 64);

  template <class Body>
  result<void> run(lane_grid grid, Body const& body, std::uint64_t seed = 1) {
    return run_on_lanes<Lanes>(
        grid, seed, waits, scratch.data(), 64,
        [&](emulated_team<Lanes> const& t, nothing const&) { body(t); }, nothing{});
  }
};

template <class Width>
class emulated_team_of : public testing::Test {};
using widths = testing::Types<std::integral_constant<int, 32>, std::integral_constant<int, 64>>;
TYPED_TEST_SUITE(emulated_team_of, widths);

TYPED_TEST(emulated_team_of, has_the_lanes_teams_and_blocks_of_its_grid) {
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

TYPED_TEST(emulated_team_of, votes_and_shares) {
  constexpr int lanes = TypeParam::value;
  played<lanes> p;
  p.run({2, 2}, [&](auto const& t) {
     std::uint64_t const wide = (std::uint64_t{1} << 63) + static_cast<std::uint64_t>(t.lane());
     EXPECT_EQ(t.broadcast(wide, lanes - 1), (std::uint64_t{1} << 63) + lanes - 1);
     EXPECT_EQ(t.broadcast(static_cast<float>(t.lane()), 3), 3.0f);
     auto const odd = t.ballot(t.lane() % 2 == 1);
     EXPECT_EQ(std::popcount(odd), lanes / 2);
     EXPECT_EQ(odd >> t.lane() & 1u, static_cast<unsigned>(t.lane() % 2));
     EXPECT_TRUE(t.any(t.lane() == 5));
     EXPECT_FALSE(t.any(false));
     EXPECT_EQ(t.template max_over<8>(static_cast<float>(t.lane())),
               static_cast<float>(t.lane() / 8 * 8 + 7));
     EXPECT_EQ(t.template max_over<lanes>(-static_cast<float>(t.lane())), 0.0f);
     EXPECT_TRUE(t.block_all(true));
     EXPECT_FALSE(t.block_all(t.index() == 0));
   }).value();
}

// Without the barrier some order shows the missing number.
TYPED_TEST(emulated_team_of, needs_a_sync_between_a_store_and_another_lanes_load) {
  constexpr int lanes = TypeParam::value;
  int wrong[2] = {};
  for (bool synced : {false, true})
    for (std::uint64_t seed = 1; seed < 10; ++seed) {
      played<lanes> p;
      std::vector<int> left(lanes);
      p.run(
           {1, 1},
           [&](auto const& t) {
             left[static_cast<std::size_t>(t.lane())] = 1;
             if (synced) t.sync();
             wrong[synced] += left[static_cast<std::size_t>((t.lane() + 1) % lanes)] == 0;
           },
           seed)
          .value();
    }
  EXPECT_GT(wrong[0], 0);
  EXPECT_EQ(wrong[1], 0);
}

TYPED_TEST(emulated_team_of, names_a_barrier_that_not_all_lanes_reach) {
  played<TypeParam::value> p;
  result<void> const sync = p.run({1, 2}, [&](auto const& t) {
    if (t.index() == 1 && t.lane() < 3) return;
    t.sync();
  });
  ASSERT_FALSE(sync);
  EXPECT_THAT(sync.error().message, HasSubstr("at sync of team 1 of block 0"));
  result<void> const block = p.run({2, 2}, [&](auto const& t) {
    if (t.block() == 1 && t.index() == 0) return;
    t.block_sync();
  });
  ASSERT_FALSE(block);
  EXPECT_THAT(block.error().message, HasSubstr("at block_sync of block 1"));
}

TYPED_TEST(emulated_team_of, names_two_calls_that_lanes_take_for_one) {
  played<TypeParam::value> p;
  result<void> const r = p.run({1, 1}, [&](auto const& t) {
    if (t.lane() == 4)
      t.sync();
    else
      t.ballot(true);
  });
  ASSERT_FALSE(r);
  EXPECT_THAT(r.error().message, HasSubstr("sync"));
  EXPECT_THAT(r.error().message, HasSubstr("ballot"));
}

TYPED_TEST(emulated_team_of, waits_for_a_word_of_another_thread) {
  played<TypeParam::value> p;
  std::uint64_t word = 0;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic_ref(word).store(std::uint64_t{3} << 16 | 5, std::memory_order_release);
  });
  p.waits.timeout = std::chrono::seconds(20);
  p.run({1, 2}, [&](auto const& t) {
     std::uint64_t seen = 0;
     EXPECT_TRUE(t.wait({flag::arrived, 1, 0, 3}, &word, seen));
     EXPECT_EQ(seen & 0xFFFF, 5u);
   }).value();
  other.join();
  EXPECT_EQ(p.told, 0u);
}

TYPED_TEST(emulated_team_of, records_a_word_that_did_not_come_and_gives_up_everywhere) {
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

TYPED_TEST(emulated_team_of, says_whom_it_waits_for_and_leaves_when_the_host_says_so) {
  played<TypeParam::value> p;
  p.waits.timeout = std::chrono::seconds(60);
  std::uint64_t word = 0;
  std::uint64_t waited_for = 0;
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
