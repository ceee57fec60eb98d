// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What every transport keeps to: one suite, instantiated for each of them. A transport that cannot
/// do something optional skips the case, with the reason.
#pragma once

#include <ferry/memory/window.hpp>
#include <ferry/transport/shared_memory.hpp>
#include <ferry/transport/transport.hpp>

#include "contract/carried_exchange.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>

namespace ferry::test {

/// A transport under test: how to make it for a rank over windows, and what its settings say of it.
struct transport_case {
  std::string name;
  transport_maker make;
  std::size_t queue_depth = 0;  ///< operations after which posting must answer try_again; 0: none
};

class transport_contract : public ::testing::TestWithParam<transport_case> {
 protected:
  static constexpr int num_ranks = 3;
  static constexpr std::size_t window_size = 1 << 16;
  static constexpr auto patience = std::chrono::seconds(20);
  using clock = std::chrono::steady_clock;

  transport_contract() {
    for (int r = 0; r < num_ranks; ++r) {
      memory_.push_back(window::plain(window_size).value());
      windows_.push_back({memory_.back().bytes()});
    }
    net_ = GetParam().make(0, windows_);
  }

  std::byte* at(int rank, std::size_t offset) {
    return memory_[static_cast<std::size_t>(rank)].data() + offset;
  }
  std::uint64_t word(int rank, std::size_t offset) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(at(rank, offset)))
        .load(std::memory_order_acquire);
  }

  /// Posts, again and again while the transport says so.
  template <class Post>
  void post_now(Post const& operation) {
    auto const end = clock::now() + patience;
    for (;;) {
      result<post> const r = operation();
      ASSERT_TRUE(r) << r.error().message;
      if (*r == post::posted) return;
      ASSERT_LT(clock::now(), end) << "posting was refused for too long";
      result<void> const progress = net_->progress();
      ASSERT_TRUE(progress) << progress.error().message;
      std::this_thread::yield();
    }
  }
  void put(int rank, std::size_t offset, std::byte const* from, std::size_t bytes) {
    post_now([&] { return net_->put({rank, offset, bytes}, from); });
  }
  void signal(int rank, std::size_t offset, std::uint64_t value,
              strength promise = strength::all_earlier) {
    post_now([&] { return net_->signal({rank, offset, 8}, value, promise); });
  }
  void flush(int rank) {
    result<void> const r = net_->flush(rank, std::chrono::seconds(20));
    ASSERT_TRUE(r) << r.error().message;
  }
  bool arrives(int rank, std::size_t offset, std::uint64_t value) {
    auto const end = clock::now() + patience;
    while (word(rank, offset) != value) {
      if (clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  template <class T>
  void expect_refused(result<T> const& r, std::string const& named) {
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::invalid_argument) << r.error().message;
    EXPECT_NE(r.error().message.find(named), std::string::npos)
        << r.error().message << " does not name " << named;
  }
  static std::vector<std::byte> pattern(std::size_t bytes, std::uint32_t seed) {
    std::minstd_rand random(seed + 1);
    std::vector<std::byte> made(bytes);
    for (std::byte& b : made) b = static_cast<std::byte>(random() >> 8);
    return made;
  }

  std::vector<window> memory_;
  std::vector<mapped_window> windows_;
  std::unique_ptr<transport> net_;
};

TEST_P(transport_contract, shows_puts_to_whoever_sees_the_covering_signal) {
  std::size_t const flag_at = window_size - 8;
  std::vector<std::vector<std::byte>> sources;
  for (std::uint32_t turn = 1; turn <= 100; ++turn) {
    int const rank = static_cast<int>(turn % 2) + 1;
    std::size_t const bytes = 1 + turn * 37 % 3000;
    sources.push_back(pattern(bytes, turn));
    put(rank, turn, sources.back().data(), bytes);
    signal(rank, flag_at, turn);
    ASSERT_TRUE(arrives(rank, flag_at, turn)) << "turn " << turn;
    ASSERT_EQ(std::memcmp(at(rank, turn), sources.back().data(), bytes), 0) << "turn " << turn;
  }
  flush(1);
  flush(2);
}

TEST_P(transport_contract, covers_all_earlier_puts_to_a_rank_not_only_the_last) {
  std::size_t const flag_at = window_size - 8, row = 1000;
  for (std::uint32_t turn = 1; turn <= 20; ++turn) {
    auto const source = pattern(30 * row, turn);
    for (std::size_t i = 0; i < 30; ++i) {
      put(1, i * row, source.data() + i * row, row);
      put(2, i * row, source.data() + i * row, row / 2);
    }
    signal(1, flag_at, turn);
    ASSERT_TRUE(arrives(1, flag_at, turn));
    ASSERT_EQ(std::memcmp(at(1, 0), source.data(), source.size()), 0) << "turn " << turn;
    flush(1);
    flush(2);
  }
}

TEST_P(transport_contract, keeps_covering_signals_in_order) {
  std::vector<std::uint64_t> const row(25, 7);
  for (std::uint64_t turn = 1; turn <= 200; ++turn) {
    put(1, 64 + 200 * (turn - 1), reinterpret_cast<std::byte const*>(row.data()), 200);
    signal(1, 0, turn);
  }
  ASSERT_TRUE(arrives(1, 0, 200));
  flush(1);
  EXPECT_EQ(word(1, 0), 200u);
}

TEST_P(transport_contract, may_use_sources_again_after_a_flush) {
  std::vector<std::byte> source(4096);
  for (std::uint32_t turn = 1; turn <= 60; ++turn) {
    auto const wanted = pattern(source.size(), turn);
    source = wanted;
    put(1, 8, source.data(), source.size());
    flush(1);
    std::fill(source.begin(), source.end(), std::byte{0xEE});
    signal(1, 0, turn);
    ASSERT_TRUE(arrives(1, 0, turn));
    ASSERT_EQ(std::memcmp(at(1, 8), wanted.data(), wanted.size()), 0) << "turn " << turn;
  }
}

TEST_P(transport_contract, flushes_a_rank_to_which_nothing_was_posted) {
  flush(0);
  flush(2);
  result<void> const r = net_->flush(num_ranks, std::chrono::seconds(1));
  expect_refused(r, std::to_string(num_ranks));
}

TEST_P(transport_contract, reaches_its_own_window_too) {
  auto const row = pattern(64, 3);
  put(0, 100, row.data(), row.size());
  signal(0, 0, 5);
  ASSERT_TRUE(arrives(0, 0, 5));
  EXPECT_EQ(std::memcmp(at(0, 100), row.data(), row.size()), 0);
  flush(0);
}

TEST_P(transport_contract, takes_puts_of_no_bytes_and_up_to_the_last_byte) {
  std::byte const one{0x5A};
  put(1, window_size, &one, 0);
  put(1, window_size - 1, &one, 1);
  flush(1);
  signal(1, 0, 1);
  ASSERT_TRUE(arrives(1, 0, 1));
  EXPECT_EQ(*at(1, window_size - 1), one);
}

TEST_P(transport_contract, refuses_regions_outside_the_window) {
  std::byte const row[64]{};
  expect_refused(net_->put({1, window_size - 63, 64}, row), std::to_string(window_size));
  expect_refused(net_->put({1, window_size + 1, 0}, row), std::to_string(window_size + 1));
  expect_refused(net_->put({1, ~std::size_t{0} - 10, 64}, row), std::to_string(window_size));
  expect_refused(net_->put({1, 8, ~std::size_t{0} - 4}, row), std::to_string(window_size));
  expect_refused(net_->put({num_ranks, 0, 64}, row), std::to_string(num_ranks));
  expect_refused(net_->put({-1, 0, 64}, row), "-1");
  expect_refused(net_->signal({1, window_size, 8}, 1, strength::all_earlier),
                 std::to_string(window_size));
  expect_refused(net_->signal({7, 0, 8}, 1, strength::this_put), "7");
  EXPECT_TRUE(net_->progress()) << "a refused call is no failure of the transport";
}

TEST_P(transport_contract, refuses_signals_that_are_no_aligned_word) {
  expect_refused(net_->signal({1, 12, 8}, 1, strength::all_earlier), "12");
  expect_refused(net_->signal({1, 16, 4}, 1, strength::all_earlier), "4");
  EXPECT_EQ(word(1, 16), 0u);
}

TEST_P(transport_contract, refuses_puts_longer_than_it_says) {
  std::size_t const most = net_->what_it_can().max_put_bytes;
  if (most >= std::size_t{1} << 40) GTEST_SKIP() << "puts of any length are possible";
  // Address space alone: the put is refused before anything is touched.
  window const large = window::plain(most + 4096).value();
  auto const net = GetParam().make(0, {windows_[0], {large.bytes()}});
  expect_refused(net->put({1, 0, most + 1}, large.data()), std::to_string(most + 1));
}

TEST_P(transport_contract, says_try_again_when_its_queue_is_full) {
  std::size_t const depth = GetParam().queue_depth;
  if (depth == 0) GTEST_SKIP() << "this transport has no queue that could fill up";
  auto const row = pattern(2048, 1);
  bool refused = false;
  for (int i = 0; i < 200000 && !refused; ++i) {
    result<post> const r = net_->put({1, 64, row.size()}, row.data());
    ASSERT_TRUE(r) << r.error().message;
    refused = *r == post::try_again;
  }
  EXPECT_TRUE(refused);
  // Nothing was posted by the refused call, and the queue drains by itself.
  flush(1);
  signal(1, 0, 9);
  EXPECT_TRUE(arrives(1, 0, 9));
}

TEST_P(transport_contract, tells_peers_how_to_connect) {
  for (int rank = 0; rank < num_ranks; ++rank) {
    auto const theirs = GetParam().make(rank, windows_);
    result<std::vector<std::byte>> const address = theirs->expose(windows_[0].bytes);
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_TRUE(net_->connect(rank, *address));
    auto cut = *address;
    cut.pop_back();
    result<void> const r = net_->connect(rank, cut);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::malformed_input) << r.error().message;
  }
  expect_refused(net_->connect(num_ranks, {}), std::to_string(num_ranks));
}

TEST_P(transport_contract, takes_posts_from_several_threads) {
  constexpr std::size_t part = window_size / 4;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < 3; ++thread)
    threads.emplace_back([&, thread] {
      std::size_t const base = thread * part;
      std::vector<std::vector<std::byte>> sources;
      for (std::uint32_t turn = 1; turn <= 60; ++turn) {
        sources.push_back(pattern(500, thread * 1000 + turn));
        put(1, base + 64, sources.back().data(), 500);
        signal(1, base, turn);
        if (!arrives(1, base, turn) ||
            std::memcmp(at(1, base + 64), sources.back().data(), 500) != 0)
          ++wrong;
        if (!net_->progress()) ++wrong;
      }
      if (!net_->flush(1, std::chrono::seconds(20))) ++wrong;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(transport_contract, has_abilities_that_fit_together) {
  abilities const a = net_->what_it_can();
  EXPECT_GT(a.max_put_bytes, 0u);
  EXPECT_LE(a.inline_bytes, a.max_put_bytes);
}

TEST_P(transport_contract, reads_short_sources_while_posting) {
  std::size_t const most = net_->what_it_can().inline_bytes;
  if (most == 0) GTEST_SKIP() << "no put is said to read its source while posting";
  std::size_t const bytes = std::min<std::size_t>(most, 256);
  auto const wanted = pattern(bytes, 5);
  auto source = wanted;
  put(1, 8, source.data(), bytes);
  std::fill(source.begin(), source.end(), std::byte{0});
  signal(1, 0, 1);
  ASSERT_TRUE(arrives(1, 0, 1));
  EXPECT_EQ(std::memcmp(at(1, 8), wanted.data(), bytes), 0);
}

TEST_P(transport_contract, fetches_what_a_peer_has_stored_or_says_that_it_cannot) {
  auto const wanted = pattern(200, 11);
  std::copy(wanted.begin(), wanted.end(), at(1, 72));
  std::vector<std::byte> got(200);
  result<void> const r = net_->fetch({1, 72, got.size()}, got.data(), std::chrono::seconds(20));
  if (!net_->what_it_can().fetches) {
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::unsupported) << r.error().message;
    return;
  }
  ASSERT_TRUE(r) << r.error().message;
  EXPECT_EQ(got, wanted);
  EXPECT_EQ(net_->failed_rank(), -1);
  std::size_t const end = window_size;
  result<void> const past = net_->fetch({1, end - 8, 16}, got.data(), std::chrono::seconds(20));
  ASSERT_FALSE(past);
  EXPECT_EQ(past.error().code, error_code::invalid_argument) << past.error().message;
}

TEST_P(transport_contract, carries_whole_steps_of_an_exchange) {
  for (int round_tokens : {0, 3}) {
    carried const c = carry_exchange(GetParam().make, {.ranks = 3, .round_tokens = round_tokens});
    for (std::string const& error : c.errors) EXPECT_EQ(error, "");
    EXPECT_EQ(c.steps, 3 * c.asked.steps);
  }
}

}  // namespace ferry::test
