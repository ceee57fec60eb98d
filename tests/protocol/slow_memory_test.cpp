// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "protocol/slow_memory.hpp"

#include "protocol/schedule.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace ferry::protocol_test {
namespace {

using words = std::array<std::uint64_t, 4>;

std::byte* at(words& w, std::size_t i) {
  return reinterpret_cast<std::byte*>(&w[i]);
}

void put(slow_memory& m, words& w, std::size_t i, std::uint64_t value) {
  m.store_word(0, 0, at(w, i), value);
}
void release(slow_memory& m, words& w, std::size_t i, std::uint64_t value) {
  m.store(0, 0, at(w, i), reinterpret_cast<std::byte const*>(&value), 8,
          slow_memory::promise::release);
}

TEST(slow_memory, shows_plain_stores_in_any_order) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    slow_memory memory(1, 1, seed);
    words w{};
    put(memory, w, 0, 1);
    put(memory, w, 1, 1);
    memory.move_one();
    seen.insert(w[0] ? "first" : "second");
  }
  EXPECT_EQ(seen, (std::set<std::string>{"first", "second"}));
}

TEST(slow_memory, shows_a_release_only_after_everything_before_it) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    slow_memory memory(1, 1, seed);
    words w{};
    put(memory, w, 0, 1);
    put(memory, w, 1, 1);
    release(memory, w, 2, 1);
    while (!memory.idle()) {
      memory.move_one();
      ASSERT_TRUE(!w[2] || (w[0] && w[1])) << "seed " << seed;
    }
  }
}

TEST(slow_memory, lets_later_stores_overtake_a_release) {
  bool overtaken = false;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    slow_memory memory(1, 1, seed);
    words w{};
    put(memory, w, 0, 1);
    release(memory, w, 1, 1);
    put(memory, w, 2, 1);
    while (!memory.idle()) {
      memory.move_one();
      overtaken = overtaken || (w[2] && !w[1]);
    }
  }
  EXPECT_TRUE(overtaken);
}

TEST(slow_memory, keeps_the_order_of_stores_to_the_same_word) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    slow_memory memory(1, 1, seed);
    words w{};
    for (std::uint64_t v = 1; v <= 5; ++v) put(memory, w, 0, v);
    for (std::uint64_t v = 1; v <= 5; ++v) {
      memory.move_one();
      ASSERT_EQ(w[0], v);
    }
  }
}

TEST(slow_memory, orders_nothing_between_targets) {
  bool later_first = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    slow_memory memory(1, 2, seed);
    words w{};
    std::uint64_t const one = 1;
    auto const* const from = reinterpret_cast<std::byte const*>(&one);
    memory.store(0, 0, at(w, 0), from, 8, slow_memory::promise::release);
    memory.store(0, 1, at(w, 1), from, 8, slow_memory::promise::release);
    memory.move_one();
    later_first = later_first || w[1] != 0;
  }
  EXPECT_TRUE(later_first);
}

TEST(slow_memory, tears_rows) {
  bool torn = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    slow_memory memory(1, 1, seed);
    words w{};
    words const row{1, 1, 1, 1};
    memory.store(0, 0, at(w, 0), reinterpret_cast<std::byte const*>(row.data()), sizeof row,
                 slow_memory::promise::plain);
    memory.move_one();
    torn = torn || w != row;
  }
  EXPECT_TRUE(torn);
}

TEST(schedule, runs_one_agent_at_a_time_and_replays_from_its_seed) {
  auto const play = [](std::uint64_t seed) {
    slow_memory memory(1, 1, 1);
    schedule order(3, memory, seed);
    std::string trace;  // unguarded: the baton is its guard
    order.run([&](int i) {
      for (int turn = 0; turn < 5; ++turn) {
        trace += static_cast<char>('a' + i);
        order.pause();
      }
    });
    return trace;
  };
  EXPECT_EQ(play(7), play(7));
  std::set<std::string> traces;
  for (std::uint64_t seed = 0; seed < 10; ++seed) traces.insert(play(seed));
  EXPECT_GT(traces.size(), 5u);
}

TEST(schedule, says_who_waits_for_what_when_nobody_can_go_on) {
  slow_memory memory(1, 1, 1);
  schedule order(2, memory, 1);
  bool first = true, second = true;
  order.run([&](int i) {
    bool& mine = i == 0 ? first : second;
    mine = order.wait_until([] { return false; }, [i] { return "agent " + std::to_string(i); });
  });
  EXPECT_FALSE(first);
  EXPECT_FALSE(second);
  EXPECT_EQ(order.stuck(), "agent 0; agent 1");
}

TEST(schedule, moves_the_memory_on_when_all_wait) {
  slow_memory memory(1, 1, 1);
  schedule order(2, memory, 1);
  words w{};
  bool arrived = false;
  order.run([&](int i) {
    if (i == 0) return put(memory, w, 3, 9);
    arrived = order.wait_until([&] { return w[3] == 9; }, [] { return ""; });
  });
  EXPECT_TRUE(arrived);
}

}  // namespace
}  // namespace ferry::protocol_test
