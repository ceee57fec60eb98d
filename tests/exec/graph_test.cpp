// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/graph.hpp>

#include <ferry/exec/event.hpp>

#include "exchange/test_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace {

using namespace ferry;
using namespace std::chrono_literals;
using testing::HasSubstr;

struct two_numbers {
  device d = oracle::test_device(0);
  device_memory from = d.allocate(memory_kind::local, 1).value();
  device_memory to = d.allocate(memory_kind::local, 1).value();
  queue q = queue::on(d).value(), side = queue::on(d).value();

  void set_from(int x) {
    q.fill(from.data(), static_cast<std::byte>(x), 1).value();
    q.wait(10s).value();
  }
  int at_to() {
    std::byte x{};
    q.copy(&x, to.data(), 1).value();
    q.wait(10s).value();
    return static_cast<int>(x);
  }
};

TEST(graph, does_nothing_when_captured_and_reads_memory_when_launched) {
  two_numbers n;
  n.set_from(3);
  graph const g = capture(n.q, [&] { return n.q.copy(n.to.data(), n.from.data(), 1); }).value();
  EXPECT_EQ(n.at_to(), 0);
  for (int x : {3, 4, 5}) {
    n.set_from(x);
    g.launch(n.q).value();
    EXPECT_EQ(n.at_to(), x);
  }
}

TEST(graph, forks_to_other_queues_and_joins_them_by_events) {
  two_numbers n;
  device_memory const middle = n.d.allocate(memory_kind::local, 1).value();
  event forked = event::on(n.d).value(), joined = event::on(n.d).value();
  graph const g = capture(n.q, [&]() -> result<void> {
                    forked.record(n.q).value();
                    forked.hold(n.side).value();
                    n.side.copy(middle.data(), n.from.data(), 1).value();
                    joined.record(n.side).value();
                    joined.hold(n.q).value();
                    return n.q.copy(n.to.data(), middle.data(), 1);
                  }).value();
  for (int x : {1, 2, 3}) {
    n.set_from(x);
    g.launch(n.side).value();
    n.side.wait(10s).value();
    EXPECT_EQ(n.at_to(), x);
  }
}

TEST(graph, is_refused_where_a_queue_was_not_joined) {
  two_numbers n;
  event forked = event::on(n.d).value();
  result<graph> const g = capture(n.q, [&]() -> result<void> {
    forked.record(n.q).value();
    forked.hold(n.side).value();
    return n.side.copy(n.to.data(), n.from.data(), 1);
  });
  ASSERT_FALSE(g);
  EXPECT_EQ(g.error().code, error_code::invalid_state);
  // Both queues work as before.
  n.set_from(9);
  n.side.copy(n.to.data(), n.from.data(), 1).value();
  n.side.wait(10s).value();
  EXPECT_EQ(n.at_to(), 9);
}

TEST(graph, refuses_in_a_capture_what_a_replay_could_not_do) {
  two_numbers n;
  event before = event::on(n.d).value();
  before.record(n.q).value();
  result<void> waited, asked, held, again;
  graph const g = capture(n.q, [&]() -> result<void> {
                    waited = n.q.wait(1s);
                    if (result<bool> const done = n.q.done(); !done) asked = done.error();
                    held = before.hold(n.q);
                    if (auto nested = capture(n.q, [] { return result<void>{}; }); !nested)
                      again = nested.error();
                    return n.q.copy(n.to.data(), n.from.data(), 1);
                  }).value();
  for (result<void> const& r : {waited, asked, held, again}) {
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::invalid_state) << r.error().message;
  }
}

TEST(graph, passes_on_what_went_wrong_in_the_captured_work) {
  two_numbers n;
  result<graph> const failed = capture(n.q, [] {
    return result<void>{error{error_code::capacity, "too much"}};
  });
  EXPECT_EQ(failed.error().message, "too much");
  result<graph> const threw =
      capture(n.q, []() -> result<void> { throw std::runtime_error("no"); });
  EXPECT_THAT(threw.error().message, HasSubstr("no"));
  n.set_from(5);
  EXPECT_EQ(n.at_to(), 0) << "not captured any more";
}

TEST(graph, runs_on_its_own_device_only) {
  two_numbers n;
  graph const g = capture(n.q, [&] { return n.q.copy(n.to.data(), n.from.data(), 1); }).value();
  queue other = queue::on(device::open("emulated:64").value()).value(), cpu;
  EXPECT_EQ(g.launch(other).error().code, error_code::invalid_argument);
  EXPECT_EQ(g.launch(cpu).error().code, error_code::invalid_argument);
}

TEST(graph, may_go_while_its_last_launch_stands_in_the_queue) {
  two_numbers n;
  n.set_from(6);
  {
    graph const g = capture(n.q, [&] { return n.q.copy(n.to.data(), n.from.data(), 1); }).value();
    for (int i = 0; i < 50; ++i) g.launch(n.q).value();
  }
  EXPECT_EQ(n.at_to(), 6);
}

}  // namespace
