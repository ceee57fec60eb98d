// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/loopback.hpp>

#include <ferry/base/platform.hpp>
#include <ferry/memory/window.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace {

using namespace ferry;
using namespace std::chrono_literals;

struct pair_of_windows {
  window own = window::plain(1 << 16).value(), peer = window::plain(1 << 16).value();
  std::unique_ptr<transport> net(loopback_faults f) const {
    return make_loopback_transport(0, {{own.bytes()}, {peer.bytes()}}, f);
  }
  std::uint64_t word(std::size_t offset) const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(peer.data() + offset))
        .load(std::memory_order_acquire);
  }
};

void post_now(auto const& operation) {
  auto const end = std::chrono::steady_clock::now() + 20s;
  while (operation().value() == post::try_again) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::yield();
  }
}

// What `this_put` is worth: a signal that does not cover the puts before it can be there before
// them. Words are used as rows here, so that looking at them too early is no data race.
TEST(loopback, lets_a_signal_that_covers_nothing_overtake_earlier_ones) {
  bool overtaken = false;
  for (std::uint64_t seed = 1; seed <= 200 && !overtaken; ++seed) {
    pair_of_windows w;
    auto const net = w.net({.seed = seed, .reorder = 1024, .delay = 300});
    for (std::uint64_t i = 1; i <= 8; ++i)
      post_now([&] { return net->signal({1, 8 * i, 8}, 1, strength::this_put); });
    post_now([&] { return net->signal({1, 0, 8}, 1, strength::this_put); });
    while (w.word(0) == 0) std::this_thread::yield();
    for (std::size_t i = 1; i <= 8; ++i) overtaken = overtaken || w.word(8 * i) == 0;
    ASSERT_TRUE(net->flush(1, 20s));
  }
  EXPECT_TRUE(overtaken);
}

TEST(loopback, delivers_in_order_when_it_does_not_reorder) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    pair_of_windows w;
    auto const net = w.net({.seed = seed, .reorder = 0, .delay = 200});
    for (std::uint64_t i = 1; i <= 20; ++i)
      post_now([&] { return net->signal({1, 8 * i, 8}, 1, strength::this_put); });
    for (std::size_t i = 20; i >= 1; --i) {
      if (w.word(8 * i) == 0) continue;
      for (std::size_t earlier = 1; earlier < i; ++earlier)
        ASSERT_EQ(w.word(8 * earlier), 1u) << "seed " << seed;
    }
    ASSERT_TRUE(net->flush(1, 20s));
  }
}

TEST(loopback, makes_the_same_choices_for_the_same_seed) {
  auto const refusals = [](std::uint64_t seed) {
    pair_of_windows w;
    auto const net = w.net({.seed = seed, .reorder = 0, .try_again = 512, .queue_depth = 100000});
    std::string answers;
    for (int i = 0; i < 16; ++i)
      answers += net->signal({1, 0, 8}, 1, strength::this_put).value() == post::posted ? 'p' : 't';
    return answers;
  };
  // The NIC's own draws come in between, but not before the first operation is posted.
  std::string const once = refusals(5);
  EXPECT_EQ(refusals(5).substr(0, once.find('p') + 1), once.substr(0, once.find('p') + 1));
  EXPECT_NE(once.find('t'), std::string::npos);
  EXPECT_NE(once.find('p'), std::string::npos);
}

TEST(loopback, ends_with_operations_still_waiting) {
  pair_of_windows w;
  std::vector<std::byte> const row(1 << 12);
  auto net = w.net({.delay = 1024, .longest_delay = 50ms});
  for (int i = 0; i < 100; ++i) post_now([&] { return net->put({1, 64, row.size()}, row.data()); });
  auto const start = std::chrono::steady_clock::now();
  net.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(loopback, says_what_it_did_not_complete_in_time) {
  pair_of_windows w;
  std::byte const row[8]{};
  auto const net = w.net({.delay = 1024, .longest_delay = 400ms});
  for (int i = 0; i < 100; ++i) post_now([&] { return net->put({1, 64, 8}, row); });
  result<void> const r = net->flush(1, 1ms);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::timeout);
  EXPECT_NE(r.error().message.find("rank 1"), std::string::npos) << r.error().message;
}

}  // namespace
