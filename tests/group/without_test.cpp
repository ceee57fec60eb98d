// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Groups that go on without some ranks: those of threads, and those that meet over TCP (here
// threads as well, so that the thread sanitizer sees them). tests/multiprocess has ranks that are
// killed.

#include <ferry/group.hpp>

#include "multiprocess/ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <optional>
#include <thread>

namespace {

using namespace std::chrono_literals;
using namespace ferry;
using testing::ElementsAre;
using testing::HasSubstr;

enum class kind { threads, tcp };

class without : public testing::TestWithParam<kind> {
 protected:
  /// Calls `body(group)` on one thread per rank.
  void on_ranks(int size, std::function<void(group)> const& body,
                group_options options = {.timeout = 20s}) {
    thread_ranks const meeting(size);
    test::reserved_port const port;
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        auto how =
            GetParam() == kind::threads ? meeting.rank(rank) : tcp(port.address(), rank, size);
        result<group> joined = join(std::move(how), options);
        ASSERT_TRUE(joined) << joined.error().message;
        body(*std::move(joined));
      });
  }
};

std::vector<int> numbers_of(group const& g) {
  std::vector<int> all;
  for (int r = 0; r < g.size(); ++r) all.push_back(g.joined_as(r));
  return all;
}

void expect_works(group const& g) {
  std::byte const mine[1] = {static_cast<std::byte>(g.joined_as(g.rank()))};
  auto const all = g.all_gather(mine);
  ASSERT_TRUE(all) << all.error().message;
  for (int r = 0; r < g.size(); ++r)
    EXPECT_EQ((*all)[static_cast<std::size_t>(r)].front(), static_cast<std::byte>(g.joined_as(r)));
  auto const shared = g.share_window(64);
  ASSERT_TRUE(shared) << shared.error().message;
  for (std::byte const b : shared->windows[static_cast<std::size_t>(g.rank())].bytes())
    EXPECT_EQ(b, std::byte{0});
}

TEST_P(without, those_who_are_left_go_on_when_a_rank_goes) {
  for (int gone : {0, 1, 3})
    on_ranks(4, [&](group g) {
      if (g.rank() == gone) return;
      auto const failed = g.barrier();
      ASSERT_FALSE(failed);
      EXPECT_EQ(failed.error().code, error_code::unreachable) << failed.error().message;
      auto const left = g.without({});
      ASSERT_TRUE(left) << left.error().message;
      EXPECT_EQ(left->size(), 3);
      EXPECT_EQ(left->joined_as(left->rank()), g.rank());
      EXPECT_EQ(left->joined_as(3), -1);
      EXPECT_THAT(numbers_of(*left), testing::Not(testing::Contains(gone)));
      expect_works(*left);
      EXPECT_EQ(g.barrier().error().code, error_code::invalid_state);
    });
}

TEST_P(without, a_late_rank_learns_that_the_others_went_on) {
  std::latch gone_on(2), told(1);
  on_ranks(3, [&](group g) {
    if (g.rank() == 1) {
      gone_on.wait();
      auto const late = g.without({});
      told.count_down();
      ASSERT_FALSE(late);
      EXPECT_EQ(late.error().code, error_code::unreachable);
      EXPECT_THAT(late.error().message, HasSubstr("goes on without this rank, 1"));
      return;
    }
    auto const left = g.without({1});
    ASSERT_TRUE(left) << left.error().message;
    EXPECT_THAT(numbers_of(*left), ElementsAre(0, 2));
    expect_works(*left);
    gone_on.count_down();
    // It does not disturb those who went on.
    told.wait();
    for (int i = 0; i < 20; ++i) expect_works(*left);
  });
}

TEST_P(without, who_waits_in_a_collective_hears_who_is_lost) {
  std::latch heard(1);
  on_ranks(3, [&](group g) {
    if (g.rank() == 1) return heard.wait();
    if (g.rank() == 0) {
      auto const left = g.without({1});
      ASSERT_TRUE(left) << left.error().message;
      return expect_works(*left);
    }
    auto const failed = g.barrier();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, error_code::unreachable);
    EXPECT_THAT(failed.error().message, HasSubstr("rank 1 is lost, says rank 0"));
    auto const left = g.without(g.lost());
    ASSERT_TRUE(left) << left.error().message;
    expect_works(*left);
    heard.count_down();
  });
}

// Each names another one: whom one of them leaves out, all leave out.
TEST_P(without, all_leave_out_whom_one_leaves_out) {
  std::latch done(3);
  on_ranks(5, [&](group g) {
    if (g.rank() == 1 || g.rank() == 3) return done.wait();
    auto const left = g.without({g.rank() == 0 ? 1 : 3});
    ASSERT_TRUE(left) << left.error().message;
    EXPECT_THAT(numbers_of(*left), ElementsAre(0, 2, 4));
    expect_works(*left);
    done.count_down();
  });
}

TEST_P(without, may_be_called_again_and_again) {
  on_ranks(4, [&](group g) {
    group const first = g;
    for (int size = 4; size > 0; --size) {
      // Nobody is lost: all ranks meet anew.
      auto left = g.without({});
      ASSERT_TRUE(left) << left.error().message;
      g = *left;
      EXPECT_EQ(g.size(), size);
      expect_works(g);
      if (g.rank() == size - 1) return;
      if (size > 1) {
        EXPECT_FALSE(g.barrier());
        EXPECT_THAT(g.lost(), ElementsAre(size - 1));
      }
    }
  });
}

TEST_P(without, half_of_two_goes_on_only_with_rank_0) {
  std::latch tried(1);
  on_ranks(2,
           [&](group g) {
             if (g.rank() == 0) return tried.wait();
             auto const alone = g.without({0});
             ASSERT_FALSE(alone);
             EXPECT_EQ(alone.error().code, error_code::unreachable);
             EXPECT_THAT(alone.error().message, HasSubstr("rank 0 may live"));
             tried.count_down();
           },
           {.timeout = 3s});
  std::latch went_on(1);
  on_ranks(2, [&](group g) {
    if (g.rank() == 1) return went_on.wait();
    auto const alone = g.without({1});
    ASSERT_TRUE(alone) << alone.error().message;
    EXPECT_EQ(alone->size(), 1);
    expect_works(*alone);
    went_on.count_down();
  });
}

TEST_P(without, names_who_does_not_come) {
  std::latch begin(2), tried(2);
  on_ranks(3,
           [&](group g) {
             if (g.rank() == 1) return tried.wait();
             begin.arrive_and_wait();
             std::optional<group> left;
             // Until the one who did not come is left out.
             for (int i = 0; i < 100 && !left; ++i) {
               auto made = g.without(i == 0 ? std::vector<int>{} : g.lost());
               if (made) {
                 left = *made;
                 continue;
               }
               EXPECT_EQ(made.error().code, error_code::timeout) << made.error().message;
               EXPECT_THAT(g.lost(), testing::Contains(1));
             }
             tried.arrive_and_wait();
             ASSERT_TRUE(left);
             EXPECT_THAT(numbers_of(*left), ElementsAre(0, 2));
           },
           {.timeout = 5s});
}

TEST_P(without, refuses_ranks_that_it_cannot_leave_out) {
  on_ranks(2, [&](group g) {
    for (int const r : {-1, 2, g.rank()}) {
      auto const refused = g.without({r});
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, error_code::invalid_argument);
    }
    EXPECT_TRUE(g.barrier()) << "a refused call changes nothing";
  });
}

// Nodes that one machine plays stay what they were.
TEST_P(without, ranks_stay_on_their_nodes) {
  on_ranks(4,
           [&](group g) {
             if (g.rank() == 1) return;
             auto const left = g.without({1});
             ASSERT_TRUE(left) << left.error().message;
             EXPECT_EQ(left->same_node(0), g.rank() == 0);
             EXPECT_EQ(left->same_node(1), g.rank() >= 2);
             EXPECT_EQ(left->same_node(2), g.rank() >= 2);
           },
           {.timeout = 20s, .ranks_per_node = 2});
}

INSTANTIATE_TEST_SUITE_P(, without, testing::Values(kind::threads, kind::tcp), [](auto const& of) {
  return of.param == kind::threads ? "threads" : "tcp";
});

}  // namespace
