// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What may not be captured is an error at capture, and leaves slots and queues as they were.

#include "exchange/captured_targets.hpp"

#include <ferry/exec/event.hpp>
#include <ferry/overlap.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using namespace std::chrono_literals;
using testing::HasSubstr;

class a_capture : public on_target {};
INSTANTIATE_TEST_SUITE_P(on, a_capture,
                         testing::Values(target{"a_plain_queue", "cpu", false, 0, 20},
                                         target{"a_cpu_stream", "cpu", true, 0, 20},
                                         target{"emulated_teams", "emulated:32", true, 0, 5}),
                         [](auto const& which) { return std::string(which.param.name); });

void expect_refused(result<void> const& r, char const* part) {
  ASSERT_FALSE(r) << part;
  EXPECT_EQ(r.error().code, error_code::invalid_state) << r.error().message;
  EXPECT_THAT(r.error().message, HasSubstr(part));
}
result<void> outcome_of(result<graph> const& g) {
  return g ? result<void>{} : g.error();
}

// It would be done once, at capture, and be missing from every replay.
TEST_P(a_capture, takes_no_calls_on_queues_that_are_not_part_of_it) {
  alone a(GetParam());
  queue other = a.another(GetParam());
  event point = event::on(a.where).value();
  result<void> sent, put, copied, ran, recorded;
  int here = 0;
  graph const g = capture(a.q, [&]() -> result<void> {
                    sent = a.ep.microbatch(1).dispatch_send(other, {});
                    put = a.s.put(other, 1);
                    copied = other.copy(&here, &here, sizeof here);
                    ran = other.run([&]() -> result<void> {
                      here = 1;
                      return {};
                    });
                    recorded = point.record(other);
                    return a.s.put(a.q);
                  }).value();
  for (result<void> const& r : {sent, put, copied, ran, recorded})
    expect_refused(r, "outside of it");
  other.wait(10s).value();
  EXPECT_EQ(here, 0);
  a.expect_usable();
  g.launch(a.q).value();
  a.ep.microbatch(0).wait(a.q).value();
}

TEST_P(a_capture, takes_no_calls_of_a_thread_outside_of_it) {
  alone a(GetParam());
  result<void> sent;
  graph const g = capture(a.q, [&]() -> result<void> {
                    std::thread([&] { sent = a.s.put(a.q); }).join();
                    return a.s.put(a.q);
                  }).value();
  expect_refused(sent, "by another thread");
  a.expect_usable();
}

TEST_P(a_capture, holds_no_other_capture) {
  alone a(GetParam());
  queue other = a.another(GetParam());
  std::vector<result<void>> again;
  graph const g = capture(a.q, [&]() -> result<void> {
                    for (queue* q : {&a.q, &other})
                      again.push_back(outcome_of(capture(*q, [&] { return a.s.put(a.q); })));
                    return a.s.put(a.q);
                  }).value();
  for (result<void> const& r : again) expect_refused(r, "a capture cannot be captured");
  a.expect_usable();
}

TEST_P(a_capture, waits_for_no_queue_and_no_event) {
  alone a(GetParam());
  queue other = a.another(GetParam());
  event before = event::on(a.where).value();
  before.record(other).value();
  result<void> waited, elsewhere, asked, held, held_elsewhere, slot;
  graph const g = capture(a.q, [&]() -> result<void> {
                    waited = a.q.wait(1s);
                    elsewhere = other.wait(1s);
                    result<bool> const done = a.q.done();
                    asked = done ? result<void>{} : done.error();
                    held = before.hold(a.q);
                    held_elsewhere = before.hold(other);
                    slot = a.ep.microbatch(0).wait(a.q);
                    return a.s.put(a.q);
                  }).value();
  for (result<void> const& r : {waited, elsewhere, asked, slot})
    expect_refused(r, "a wait for a queue cannot be captured");
  expect_refused(held, "outside the capture");
  expect_refused(held_elsewhere, "outside of it");
  a.expect_usable();
}

TEST_P(a_capture, is_refused_where_a_step_is_on_a_queue_that_is_not_joined) {
  alone a(GetParam());
  queue side = a.another(GetParam());
  event forked = event::on(a.where).value(), joined = event::on(a.where).value();
  for (bool joins_too_early : {false, true}) {
    result<graph> const g = capture(a.q, [&]() -> result<void> {
      FERRY_CHECK(forked.record(a.q));
      FERRY_CHECK(forked.hold(side));
      if (joins_too_early) {
        FERRY_CHECK(joined.record(side));
        FERRY_CHECK(joined.hold(a.q));
      }
      return a.s.put(side);
    });
    expect_refused(outcome_of(g), "not joined");
    a.expect_usable();
  }
}

// An event of a graph happens in launches, which nobody outside can see.
TEST_P(a_capture, leaves_events_that_say_nothing_outside_of_its_graph) {
  alone a(GetParam());
  queue side = a.another(GetParam());
  event point = event::on(a.where).value();
  graph const g = capture(a.q, [&]() -> result<void> {
                    FERRY_CHECK(a.s.put(a.q));
                    return point.record(a.q);
                  }).value();
  expect_refused(point.hold(side), "a place in its graph");
  result<bool> const happened = point.happened();
  expect_refused(happened ? result<void>{} : happened.error(), "a place in its graph");
  a.expect_usable();
  g.launch(a.q).value();
  point.record(a.q).value();
  point.hold(side).value();
  side.wait(10s).value();
  EXPECT_TRUE(point.happened().value());
}

// A count that the host gave stays: it is an argument like any other.
TEST_P(a_capture, keeps_a_token_count_that_was_given_by_value) {
  alone a(GetParam());
  std::vector<step> const drawn = draw_steps(a.w, 20, 6);
  for (step const& s : drawn) {
    int const tokens = s.brought[0].tokens;
    captured_step fixed(a.w, 0, a.ep, 0, a.where, std::max(1, tokens));
    if (tokens == 0) continue;
    graph const g = capture(a.q, [&] { return fixed.count_on_host().put(a.q); }).value();
    fixed.bring(s);
    fixed.say_tokens(1 - tokens);  // nobody looks there
    for (int i = 0; i < 2; ++i) {
      g.launch(a.q).value();
      a.ep.microbatch(0).wait(a.q).value();
    }
    complaints wrong;
    fixed.check(s, 0, wrong);
    EXPECT_TRUE(wrong.none()) << wrong.text();
  }
}

// A driver that gives up in a capture gives up the capture.
TEST_P(a_capture, ends_with_the_driver_that_waits_for_a_turn_in_vain) {
  alone a(GetParam());
  queue other = a.another(GetParam());
  overlap both =
      overlap::make(a.ranks, a.q, other, {.driver = overlap_driver::handed_over, .timeout = 50ms})
          .value();
  captured_step second(a.w, 0, a.ep, 1, a.where, a.w.options.max_tokens);
  std::vector<stage_list> const lists = {
      {{"send", stage_kind::communication, [&](queue& q) { return a.s.send(q); }, false},
       {"sleep", stage_kind::compute,
        [](queue&) -> result<void> {
          std::this_thread::sleep_for(400ms);
          return {};
        },
        true}},
      {{"send", stage_kind::communication, [&](queue& q) { return second.send(q); }, true}}};
  result<graph> const g = capture(a.q, [&] { return both.run(lists); });
  ASSERT_FALSE(g);
  EXPECT_EQ(g.error().code, error_code::timeout) << g.error().message;
  a.expect_usable();
  graph const whole = capture(a.q, [&] { return second.put(a.q); }).value();
  whole.launch(a.q).value();
  a.ep.microbatch(1).wait(a.q).value();
}

}  // namespace
