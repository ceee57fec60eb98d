// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/waiter.hpp>

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <thread>
#include <utility>

namespace {

using namespace ferry;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

struct rank {
  alignas(64) std::uint64_t word = 0;
  std::uint32_t asleep[4] = {};
  status_record status{};

  waiter with(std::chrono::milliseconds timeout, peer_watch watch = {}, int spins = 0) {
    return waiter(
        {.timeout = timeout, .spin_turns = spins, .yield_turns = spins ? 20 : 0, .slot = 3}, asleep,
        &status, std::move(watch));
  }
};

awaited done_of(std::int32_t writer, std::uint64_t epoch) {
  return {flag::done, writer, -1, epoch};
}

TEST(waiter, returns_at_once_when_the_epoch_is_there_or_past) {
  rank r;
  waiter w = r.with(1ms);
  r.word = 9;
  std::uint64_t seen = 0;
  EXPECT_TRUE(w.wait(done_of(1, 9), &r.word, seen));
  EXPECT_EQ(seen, 9u);
  EXPECT_TRUE(w.wait(done_of(1, 4), &r.word, seen));
  r.word = std::uint64_t{5} << 24 | 77;
  EXPECT_TRUE(w.wait({flag::header, 1, -1, 5}, &r.word, seen));
  EXPECT_EQ(seen & 0xFFFFFF, 77u);
  r.word = std::uint64_t{5} << 16 | 0xFFFF;
  EXPECT_TRUE(w.wait({flag::arrived, 1, 0, 5}, &r.word, seen));
  EXPECT_FALSE(w.failed());
}

// A header word keeps 40 bits of the epoch, an arrived word 48.
TEST(waiter, goes_on_when_a_word_has_lost_the_upper_bits_of_its_epoch) {
  for (auto [kind, bits] : {std::pair{flag::header, 40}, std::pair{flag::arrived, 48}})
    for (std::uint64_t epoch = (std::uint64_t{1} << bits) - 2;
         epoch < (std::uint64_t{1} << bits) + 3; ++epoch) {
      rank r;
      waiter w = r.with(5ms);
      std::uint64_t seen = 0;
      r.word = epoch << epoch_shift(kind) | 7;
      EXPECT_TRUE(w.wait({kind, 1, 0, epoch}, &r.word, seen)) << epoch;
      EXPECT_EQ(seen & 0xFFFF, 7u);
      r.word = (epoch - 1) << epoch_shift(kind) | 7;
      EXPECT_FALSE(w.wait({kind, 1, 0, epoch}, &r.word, seen)) << epoch;
    }
}

TEST(waiter, takes_no_count_or_map_for_an_epoch) {
  rank r;
  waiter w = r.with(5ms);
  std::uint64_t seen = 0;
  r.word = std::uint64_t{4} << 16 | 0xFFFF;
  EXPECT_FALSE(w.wait({flag::arrived, 1, 0, 5}, &r.word, seen));
  EXPECT_EQ(w.what_failed().seen, 4u);
}

TEST(waiter, gives_up_at_its_deadline_and_leaves_a_record) {
  rank r;
  waiter w = r.with(80ms);
  std::uint64_t seen = 0;
  auto const start = clock::now();
  EXPECT_FALSE(w.wait({flag::back, 2, 6, 12}, &r.word, seen));
  auto const took = clock::now() - start;
  EXPECT_GE(took, 80ms);
  EXPECT_LT(took, 1s);
  ASSERT_TRUE(w.failed());
  failure const& f = w.what_failed();
  EXPECT_EQ(f.code, error_code::timeout);
  EXPECT_EQ(f.rank, 2);
  EXPECT_EQ(f.wait.kind, flag::back);
  EXPECT_EQ(f.wait.chunk, 6);
  EXPECT_EQ(f.wait.epoch, 12u);
  EXPECT_EQ(f.slot, 3);
  EXPECT_EQ(f.seen, 0u);
  EXPECT_EQ(r.status.failed, status_record::complete);
  EXPECT_EQ(r.status.record.rank, 2);
  EXPECT_EQ(r.status.waiting, 0u);
  for (std::uint32_t n : r.asleep) EXPECT_EQ(n, 0u);
}

TEST(waiter, keeps_the_first_failure) {
  rank r;
  waiter w = r.with(1ms), other = r.with(1ms);
  w.fail({error_code::unreachable, 1, done_of(1, 1), 0, 0});
  w.fail({error_code::timeout, 2, done_of(2, 1), 0, 0});
  other.fail({error_code::timeout, 3, done_of(3, 1), 1, 0});
  EXPECT_EQ(w.what_failed().rank, 1);
  EXPECT_EQ(other.what_failed().rank, 3);
  EXPECT_EQ(r.status.record.rank, 1) << "the record is the rank's first failure of any slot";
}

TEST(waiter, ends_every_wait_of_its_slot_when_one_has_failed) {
  rank r;
  waiter w = r.with(60s);
  std::uint64_t seen = 0;
  std::thread second([&] {
    std::this_thread::sleep_for(20ms);
    w.fail({error_code::timeout, 1, done_of(1, 1), 0, 0});
  });
  auto const start = clock::now();
  EXPECT_FALSE(w.wait(done_of(2, 1), &r.word, seen));
  EXPECT_LT(clock::now() - start, 2s);
  EXPECT_EQ(w.what_failed().rank, 1);
  second.join();
}

TEST(waiter, wakes_when_the_word_is_stored) {
  for (int spins : {0, 200}) {
    rank r;
    waiter w = r.with(10s, {}, spins);
    std::chrono::nanoseconds longest{0};
    std::thread writer([&] {
      for (std::uint64_t epoch = 1; epoch <= 200; ++epoch) {
        std::this_thread::sleep_for(200us);
        store_and_wake(&r.word, epoch, &r.asleep[1]);
      }
    });
    std::uint64_t seen = 0;
    for (std::uint64_t epoch = 1; epoch <= 200; ++epoch)
      ASSERT_TRUE(w.wait(done_of(1, epoch), &r.word, seen));
    writer.join();
    EXPECT_EQ(r.asleep[1], 0u);
  }
}

// Whatever the order of "I sleep" and "I wrote", one of the two sees the other (R11). A lost
// wake-up costs a sleep of 50 ms; a busy machine may make a wait or two look like one.
TEST(waiter, loses_no_wake_up_between_two_ranks) {
  rank a, b;
  waiter wait_a = a.with(30s), wait_b = b.with(30s);
  constexpr std::uint64_t turns = 3000;
  constexpr int a_handful = 6;
  std::atomic<int> lost{0};
  auto const takes_its_turn = [&](waiter& w, std::int32_t peer, std::uint64_t turn, rank& own) {
    std::uint64_t seen = 0;
    auto const start = clock::now();
    bool const came = w.wait(done_of(peer, turn), &own.word, seen);
    if (clock::now() - start >= 45ms) ++lost;
    return came && lost <= a_handful;
  };
  std::thread other([&] {
    for (std::uint64_t i = 1; i <= turns && takes_its_turn(wait_b, 0, i, b); ++i)
      store_and_wake(&a.word, i, &a.asleep[1]);
    store_and_wake(&a.word, turns, &a.asleep[1]);  // whoever stops early lets the other go
  });
  std::uint64_t turn = 1;
  for (; turn <= turns; ++turn) {
    store_and_wake(&b.word, turn, &b.asleep[0]);
    if (!takes_its_turn(wait_a, 1, turn, a)) break;
  }
  store_and_wake(&b.word, turns, &b.asleep[0]);
  other.join();
  EXPECT_LE(lost, a_handful) << "waits of 45 ms and more, up to turn " << turn;
  EXPECT_FALSE(wait_a.failed() || wait_b.failed());
}

// A writer that cannot wake anybody is seen after 50 ms at most.
TEST(waiter, sees_a_word_that_nobody_woke_it_for) {
  rank r;
  waiter w = r.with(10s);
  std::thread writer([&] {
    std::this_thread::sleep_for(10ms);
    std::atomic_ref(r.word).store(1, std::memory_order_release);
  });
  std::uint64_t seen = 0;
  auto const start = clock::now();
  EXPECT_TRUE(w.wait(done_of(1, 1), &r.word, seen));
  EXPECT_LT(clock::now() - start, 1s);
  writer.join();
}

TEST(waiter, asks_its_watch_now_and_then_and_believes_it) {
  rank r;
  int asked = 0;
  waiter w = r.with(60s, [&](awaited const& what, bool expired, failure& found) {
    EXPECT_EQ(what.rank, 1);
    EXPECT_FALSE(expired);
    EXPECT_EQ(r.status.waiting, 2u) << "peers may see whom this rank waits for";
    found.code = error_code::unreachable;
    found.rank = 3;
    return ++asked == 3;
  });
  std::uint64_t seen = 0;
  auto const start = clock::now();
  EXPECT_FALSE(w.wait(done_of(1, 1), &r.word, seen));
  EXPECT_GE(clock::now() - start, 140ms);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(w.what_failed().code, error_code::unreachable);
  EXPECT_EQ(w.what_failed().rank, 3);
}

TEST(waiter, takes_a_word_that_came_while_the_watch_looked) {
  rank r;
  waiter w = r.with(60s, [&](awaited const&, bool, failure&) {
    r.word = 1;  // a peer that wrote its word before it left
    return true;
  });
  std::uint64_t seen = 0;
  EXPECT_TRUE(w.wait(done_of(1, 1), &r.word, seen));
  EXPECT_FALSE(w.failed());
}

TEST(waiter, asks_its_watch_once_more_at_the_deadline) {
  rank r;
  int expirations = 0;
  waiter w = r.with(20ms, [&](awaited const&, bool expired, failure& found) {
    expirations += expired;
    if (expired) found.rank = 2;
    return expired;
  });
  std::uint64_t seen = 0;
  EXPECT_FALSE(w.wait(done_of(1, 1), &r.word, seen));
  EXPECT_EQ(expirations, 1);
  EXPECT_EQ(w.what_failed().rank, 2);
}

TEST(waiter, sleeps_while_it_waits) {
  rank r;
  waiter w = r.with(300ms);
  std::uint64_t seen = 0;
  auto const used = [] {
    rusage u{};
    getrusage(RUSAGE_THREAD, &u);
    return std::chrono::seconds(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           std::chrono::microseconds(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
  };
  auto const before = used();
  EXPECT_FALSE(w.wait(done_of(1, 1), &r.word, seen));
  EXPECT_LT(used() - before, 100ms);
}

}  // namespace
