// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/group.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace {

using namespace std::chrono_literals;
using ferry::bytes;
using ferry::error_code;
using ferry::presence;
using ferry::reach;

/// Calls `body(rank)` on one thread per rank and waits for all.
void on_threads(int size, std::function<void(int)> const& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&body, rank] { body(rank); });
}

bytes of(std::string const& text) {
  auto const* at = reinterpret_cast<std::byte const*>(text.data());
  return {at, at + text.size()};
}

TEST(thread_ranks, join_and_gather_in_rank_order) {
  for (int size : {1, 2, 3, 8, 17}) {
    auto const ranks = ferry::threads(size);
    on_threads(size, [&](int rank) {
      auto const group = ferry::join(ranks.rank(rank)).value();
      EXPECT_EQ(group.rank(), rank);
      EXPECT_EQ(group.size(), size);
      EXPECT_EQ(group.ranks_on_this_machine(), size);
      for (int round = 0; round < 50; ++round) {
        auto const all =
            group.all_gather(of(std::string(static_cast<std::size_t>(rank), 'a' + round % 26)));
        ASSERT_TRUE(all) << all.error().message;
        ASSERT_EQ(all->size(), static_cast<std::size_t>(size));
        for (int peer = 0; peer < size; ++peer)
          EXPECT_EQ((*all)[peer],
                    of(std::string(static_cast<std::size_t>(peer), 'a' + round % 26)));
      }
    });
  }
}

TEST(thread_ranks, barrier_lets_nobody_through_before_all_came) {
  auto const ranks = ferry::threads(4);
  std::atomic<int> came = 0;
  on_threads(4, [&](int rank) {
    auto const group = ferry::join(ranks.rank(rank)).value();
    std::this_thread::sleep_for(rank * 10ms);
    ++came;
    group.barrier().value();
    EXPECT_EQ(came, 4);
  });
}

TEST(thread_ranks, of_different_nodes_do_not_map_each_other) {
  auto const ranks = ferry::threads(5);
  on_threads(5, [&](int rank) {
    auto const group = ferry::join(ranks.rank(rank), {.ranks_per_node = 2}).value();
    EXPECT_EQ(group.index_on_this_machine(), rank);
    auto const shared = group.share_window(4096).value();
    for (int peer = 0; peer < 5; ++peer) {
      auto const i = static_cast<std::size_t>(peer);
      bool const near = peer / 2 == rank / 2;
      EXPECT_EQ(group.same_node(peer), near);
      EXPECT_EQ(shared.how[i] == ferry::reach::network, !near);
      EXPECT_EQ(shared.windows[i].data() != nullptr, near);
      EXPECT_EQ(shared.why[i].empty(), near);
      EXPECT_EQ(shared.bytes[i], 4096u);
    }
    EXPECT_FALSE(group.same_node(5));
  });
}

TEST(thread_ranks, must_agree_on_what_a_node_is) {
  auto const ranks = ferry::threads(2);
  on_threads(2, [&](int rank) {
    auto const group = ferry::join(ranks.rank(rank), {.ranks_per_node = rank});
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, error_code::invalid_argument);
    EXPECT_NE(group.error().message.find("ranks_per_node is "), std::string::npos)
        << group.error().message;
  });
  auto const alone = ferry::join(ferry::threads(1).rank(0), {.ranks_per_node = -1});
  ASSERT_FALSE(alone);
  EXPECT_NE(alone.error().message.find("-1"), std::string::npos) << alone.error().message;
}

TEST(thread_ranks, a_missing_rank_is_named_when_the_deadline_passes) {
  auto const ranks = ferry::threads(4);
  on_threads(2, [&](int rank) {
    auto const start = std::chrono::steady_clock::now();
    auto const group = ferry::join(ranks.rank(rank), {.timeout = 200ms});
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code, error_code::timeout);
    EXPECT_NE(group.error().message.find("ranks 2, 3"), std::string::npos) << group.error().message;
    EXPECT_GE(std::chrono::steady_clock::now() - start, 200ms);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 1200ms);
  });
}

TEST(thread_ranks, a_rank_that_left_is_seen_and_fails_the_next_collective_at_once) {
  auto const ranks = ferry::threads(3);
  on_threads(3, [&](int rank) {
    auto group = ferry::join(ranks.rank(rank)).value();
    EXPECT_EQ(group.look(rank), presence::here);
    if (rank == 1) return;
    auto const outcome = group.barrier();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, error_code::unreachable);
    EXPECT_NE(outcome.error().message.find("rank 1"), std::string::npos);
    EXPECT_EQ(group.look(1), presence::left);
    auto const again = group.barrier();
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, error_code::invalid_state);
    EXPECT_NE(again.error().message.find("rank 1"), std::string::npos);
  });
}

TEST(thread_ranks, the_group_is_left_when_its_last_copy_goes) {
  auto const ranks = ferry::threads(2);
  on_threads(2, [&](int rank) {
    auto group = std::make_unique<ferry::group>(ferry::join(ranks.rank(rank)).value());
    auto const copy = std::make_unique<ferry::group>(*group);
    group->barrier().value();
    group.reset();
    copy->barrier().value();
    EXPECT_EQ(copy->look(1 - rank), presence::here);
    copy->barrier().value();
  });
}

TEST(thread_ranks, refuse_what_is_out_of_range) {
  EXPECT_EQ(ferry::join(ferry::threads(0).rank(0)).error().code, error_code::invalid_argument);
  EXPECT_EQ(ferry::join(ferry::threads(-1).rank(0)).error().code, error_code::invalid_argument);
  EXPECT_EQ(ferry::join(ferry::threads(70000).rank(0)).error().code, error_code::invalid_argument);
  EXPECT_EQ(ferry::join(ferry::threads(2).rank(2)).error().code, error_code::invalid_argument);
  EXPECT_EQ(ferry::join(ferry::threads(2).rank(-1)).error().code, error_code::invalid_argument);
}

TEST(thread_ranks, refuse_a_rank_that_is_taken) {
  auto const ranks = ferry::threads(1);
  auto const group = ferry::join(ranks.rank(0)).value();
  EXPECT_EQ(group.look(7), presence::gone);
  auto const second = ferry::join(ranks.rank(0));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, error_code::invalid_state);
}

TEST(thread_ranks, share_one_mapping_of_each_window) {
  auto const ranks = ferry::threads(3);
  std::byte* seen[3][3] = {};
  on_threads(3, [&](int rank) {
    auto const group = ferry::join(ranks.rank(rank)).value();
    auto const size = static_cast<std::size_t>(100 * (rank + 1));
    auto const shared = group.share_window(size).value();
    for (int peer = 0; peer < 3; ++peer) {
      auto const& w = shared.windows[peer];
      ASSERT_EQ(w.size(), static_cast<std::size_t>(100 * (peer + 1)));
      EXPECT_EQ(shared.reach_of(peer), peer == rank ? reach::self : reach::mapped);
      EXPECT_EQ(w.data()[rank], std::byte{0});
      w.data()[rank] = std::byte(10 + rank);
      seen[rank][peer] = w.data();
    }
    group.barrier().value();
    for (int peer = 0; peer < 3; ++peer)
      EXPECT_EQ(shared.windows[rank].data()[peer], std::byte(10 + peer));
  });
  for (int peer = 0; peer < 3; ++peer) {
    EXPECT_EQ(seen[0][peer], seen[1][peer]);
    EXPECT_EQ(seen[0][peer], seen[2][peer]);
  }
}

TEST(thread_ranks, share_windows_of_no_bytes) {
  auto const ranks = ferry::threads(3);
  on_threads(3, [&](int rank) {
    auto const group = ferry::join(ranks.rank(rank)).value();
    auto const shared = group.share_window(rank == 1 ? 64 : 0).value();
    EXPECT_EQ(shared.windows[0].data(), nullptr);
    EXPECT_EQ(shared.windows[1].size(), 64u);
    EXPECT_EQ(shared.reach_of(2), rank == 2 ? reach::self : reach::mapped);
    EXPECT_EQ(shared.bytes, (std::vector<std::size_t>{0, 64, 0}));
  });
}

TEST(thread_ranks, all_fail_when_one_has_not_the_memory) {
  auto const ranks = ferry::threads(3);
  on_threads(3, [&](int rank) {
    auto const group = ferry::join(ranks.rank(rank)).value();
    auto const shared = group.share_window(rank == 1 ? SIZE_MAX / 2 : 64);
    ASSERT_FALSE(shared);
    EXPECT_EQ(shared.error().code, error_code::out_of_memory);
    EXPECT_EQ(shared.error().message.find("on rank 1") != std::string::npos, rank != 1);
    EXPECT_TRUE(group.share_window(64)) << "a refused size breaks nothing";
  });
}

TEST(thread_ranks, windows_outlive_the_rank_that_made_them) {
  auto const ranks = ferry::threads(2);
  on_threads(2, [&](int rank) {
    ferry::shared_windows shared;
    {
      auto const group = ferry::join(ranks.rank(rank)).value();
      shared = group.share_window(64).value();
    }
    shared.windows[1 - rank].data()[rank] = std::byte{1};
  });
}

TEST(thread_ranks, collectives_from_several_threads_of_a_rank_do_not_mix) {
  auto const ranks = ferry::threads(2);
  on_threads(2, [&](int rank) {
    auto const group = ferry::join(ranks.rank(rank)).value();
    on_threads(4, [&](int) {
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(group.barrier());
        EXPECT_EQ(group.look(1 - rank), presence::here);
      }
    });
    group.barrier().value();
  });
}

}  // namespace
