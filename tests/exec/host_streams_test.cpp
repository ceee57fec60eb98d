// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Queues, events and graphs of the CPU: they mean what those of devices mean.

#include <ferry/exec/event.hpp>
#include <ferry/exec/graph.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using namespace ferry;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

result<void> nothing() {
  return {};
}
event cpu_event() {
  return event::on(device()).value();
}

/// Plain queues and streams alike.
class cpu_queue : public testing::TestWithParam<bool> {
 protected:
  static queue make() { return GetParam() ? queue::cpu_stream().value() : queue(); }
  queue q = make(), side = make();
  std::vector<int> log;
  std::mutex noting;
  result<void> note(queue& on, int what) {
    return on.run([this, what]() -> result<void> {
      std::lock_guard lock(noting);  // two streams may take notes at once
      log.push_back(what);
      return {};
    });
  }
  void done() {
    q.wait(10s).value();
    side.wait(10s).value();
  }
};
INSTANTIATE_TEST_SUITE_P(host_streams, cpu_queue, testing::Bool(), [](auto const& which) {
  return which.param ? std::string("stream") : std::string("plain");
});

TEST_P(cpu_queue, does_its_work_in_order) {
  std::vector<int> expected;
  for (int i = 0; i < 2000; ++i) {  // more than a queue first has room for
    note(q, i).value();
    expected.push_back(i);
  }
  done();
  EXPECT_EQ(log, expected);
}

TEST_P(cpu_queue, copies_and_fills_when_its_turn_comes) {
  int from = 1, to = 0;
  q.run([&]() -> result<void> {
     from = 7;
     return {};
   }).value();
  q.copy(&to, &from, sizeof to).value();
  q.fill(&from, std::byte{1}, sizeof from).value();
  done();
  EXPECT_EQ(to, 7);
  EXPECT_EQ(from, 0x01010101);
}

TEST_P(cpu_queue, does_nothing_while_captured_and_everything_at_each_launch) {
  int value = 0;
  graph const g = capture(q, [&] {
                    EXPECT_TRUE(q.is_capturing().value());
                    return q.run([&]() -> result<void> {
                      log.push_back(value);
                      return {};
                    });
                  }).value();
  EXPECT_FALSE(q.is_capturing().value());
  EXPECT_THAT(log, ElementsAre());
  for (value = 1; value <= 3; ++value) {
    g.launch(side).value();
    done();
  }
  EXPECT_THAT(log, ElementsAre(1, 2, 3));
}

TEST_P(cpu_queue, forks_to_other_queues_and_joins_them_by_events) {
  event forked = cpu_event(), joined = cpu_event();
  int middle = 0, end = 0, begin = 0;
  graph const g = capture(q, [&]() -> result<void> {
                    forked.record(q).value();
                    forked.hold(side).value();
                    side.copy(&middle, &begin, sizeof begin).value();
                    joined.record(side).value();
                    joined.hold(q).value();
                    return q.copy(&end, &middle, sizeof end);
                  }).value();
  for (begin = 1; begin < 300; ++begin) {
    g.launch(q).value();
    done();
    ASSERT_EQ(end, begin);
  }
}

TEST_P(cpu_queue, refuses_in_a_capture_what_a_replay_could_not_do) {
  event before = cpu_event(), outside = cpu_event();
  before.record(q).value();
  graph const other = capture(side, nothing).value();
  result<void> waited, held, again, launched, drawn;
  graph const g = capture(q, [&]() -> result<void> {
                    waited = q.wait(1s);
                    held = before.hold(q);
                    launched = other.launch(q);
                    if (auto nested = capture(q, nothing); !nested) again = nested.error();
                    return note(q, 1);
                  }).value();
  for (result<void> const& r : {waited, held, again, launched}) {
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::invalid_state) << r.error().message;
  }
}

TEST_P(cpu_queue, refuses_a_fork_that_is_not_joined_and_works_on) {
  event forked = cpu_event();
  result<graph> const g = capture(q, [&]() -> result<void> {
    forked.record(q).value();
    forked.hold(side).value();
    return note(side, 1);
  });
  ASSERT_FALSE(g);
  EXPECT_EQ(g.error().code, error_code::invalid_state);
  EXPECT_THAT(g.error().message, HasSubstr("not joined"));
  note(q, 2).value();
  note(side, 3).value();
  done();
  EXPECT_THAT(log, testing::UnorderedElementsAre(2, 3));
}

TEST_P(cpu_queue, is_free_again_after_captured_work_that_throws) {
  result<graph> const g = capture(q, []() -> result<void> { throw std::runtime_error("no such"); });
  ASSERT_FALSE(g);
  EXPECT_THAT(g.error().message, HasSubstr("no such"));
  note(q, 1).value();
  done();
  EXPECT_THAT(log, ElementsAre(1));
}

TEST_P(cpu_queue, tells_what_went_wrong_in_a_replay_and_leaves_out_the_rest) {
  bool fails = true;
  graph const g = capture(q, [&]() -> result<void> {
                    q.run([&]() -> result<void> {
                       if (fails) return error{error_code::capacity, "too much"};
                       return {};
                     }).value();
                    return note(q, 1);
                  }).value();
  result<void> launched = g.launch(q);
  if (launched) launched = q.wait(10s);
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().message, "too much");
  EXPECT_THAT(log, ElementsAre());
  // A graph is as good as new; what failed is the queue.
  fails = false;
  g.launch(side).value();
  side.wait(10s).value();
  EXPECT_THAT(log, ElementsAre(1));
}

TEST_P(cpu_queue, turns_an_exception_into_an_error) {
  result<void> r = q.run([]() -> result<void> { throw std::runtime_error("thrown"); });
  if (r) r = q.wait(10s);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::invalid_state);
  EXPECT_THAT(r.error().message, HasSubstr("thrown"));
}

TEST(cpu_stream, returns_before_its_work_is_done) {
  queue q = queue::cpu_stream().value();
  EXPECT_TRUE(q.is_asynchronous());
  EXPECT_FALSE(queue().is_asynchronous());
  std::atomic<bool> go{false};
  q.run([&]() -> result<void> {
     while (!go) std::this_thread::yield();
     return {};
   }).value();
  event after = cpu_event();
  after.record(q).value();
  EXPECT_FALSE(q.done().value());
  EXPECT_FALSE(after.happened().value());
  result<void> const late = q.wait(5ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, error_code::timeout);
  go = true;
  q.wait(10s).value();
  EXPECT_TRUE(after.happened().value());
}

TEST(cpu_stream, is_held_by_an_event_of_another_one) {
  queue first = queue::cpu_stream().value(), second = queue::cpu_stream().value(), plain;
  std::atomic<int> order{0};
  int seen_by_second = 0, seen_by_plain = 0;
  event e = cpu_event();
  first
      .run([&]() -> result<void> {
        std::this_thread::sleep_for(20ms);
        order = 1;
        return {};
      })
      .value();
  e.record(first).value();
  e.hold(second).value();
  second
      .run([&]() -> result<void> {
        seen_by_second = order;
        return {};
      })
      .value();
  e.hold(plain).value();  // waits here
  seen_by_plain = order;
  second.wait(10s).value();
  EXPECT_EQ(seen_by_second, 1);
  EXPECT_EQ(seen_by_plain, 1);
}

TEST(cpu_stream, keeps_its_first_failure_and_lets_others_go_on) {
  queue q = queue::cpu_stream().value(), other = queue::cpu_stream().value();
  event e = cpu_event();
  bool ran = false, went_on = false;
  q.run([] { return result<void>{error{error_code::device, "first"}}; }).value();
  static_cast<void>(q.run([&]() -> result<void> {
    ran = true;
    return {};
  }));
  e.record(q).value();
  e.hold(other).value();
  other
      .run([&]() -> result<void> {
        went_on = true;
        return {};
      })
      .value();
  other.wait(10s).value();
  EXPECT_TRUE(went_on);
  EXPECT_FALSE(ran);
  EXPECT_EQ(q.wait(10s).error().message, "first");
  EXPECT_EQ(q.run(nothing).error().message, "first");
}

TEST(cpu_stream, takes_work_from_several_threads) {
  queue q = queue::cpu_stream(2).value();
  EXPECT_EQ(q.teams(), 2);
  int sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        q.run([&]() -> result<void> {
           ++sum;
           return {};
         }).value();
    });
  for (std::thread& t : threads) t.join();
  q.wait(10s).value();
  EXPECT_EQ(sum, 2000);
}

TEST(cpu_stream, refuses_teams_out_of_range) {
  for (int teams : {0, -1, 257}) {
    result<queue> const q = queue::cpu_stream(teams);
    ASSERT_FALSE(q);
    EXPECT_EQ(q.error().code, error_code::invalid_argument);
  }
}

}  // namespace
