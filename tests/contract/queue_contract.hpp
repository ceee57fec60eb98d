// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Queues, events and graphs with kernels on them, one of which holds its queue up until the host
/// lets it go: what is done when needs no clock.
#pragma once

#include "contract/contract_case.hpp"

#include <ferry/exec/event.hpp>
#include <ferry/exec/graph.hpp>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace ferry::test {

class queue_contract : public contract_case {
 protected:
  static constexpr lane_grid grid{1, 1};

  contract_place place_{where()};
  contract_array<std::uint64_t> word_{where(), 1, memory_kind::pinned}, seen_{where(), 1};
  contract_array<std::uint32_t> arrived_{where(), 1}, failed_{where(), 1};
  contract_array<std::uint32_t> one_{where(), 1}, other_{where(), 1};
  queue q_ = place_.make_queue(1), side_ = place_.make_queue(1);

  result<void> hold_up(queue& q) {
    return place_.run(
        q, grid,
        await_word{
            {flag::done, 0, -1, 1}, word_.data(), seen_.data(), arrived_.data(), failed_.data()});
  }
  void let_go() { std::atomic_ref(*word_.data()).store(1); }
};

TEST_P(queue_contract, is_not_done_before_its_kernel_is) {
  hold_up(q_).value();
  EXPECT_FALSE(q_.done().value());
  result<void> const waited = q_.wait(std::chrono::milliseconds(20));
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, error_code::timeout);
  let_go();
  finish(q_);
  EXPECT_TRUE(q_.done().value());
  EXPECT_EQ(failed_.read().front(), 0u);
}

TEST_P(queue_contract, runs_beside_another_queue_and_not_before_an_event_that_holds_it) {
  event reached = event::on(where()).value();
  hold_up(q_).value();
  reached.record(q_).value();
  place_.run(side_, grid, pass_on{one_.data(), other_.data()}).value();
  finish(side_);  // nothing of the first queue is in its way
  EXPECT_FALSE(reached.happened().value());
  reached.hold(side_).value();
  place_.run(side_, grid, pass_on{other_.data(), one_.data()}).value();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(side_.done().value());
  let_go();
  finish(side_);
  EXPECT_TRUE(reached.happened().value());
  EXPECT_EQ(one_.read().front(), 2u);
}

TEST_P(queue_contract, replays_kernels_of_two_queues_from_a_graph) {
  event forked = event::on(where()).value(), joined = event::on(where()).value();
  contract_array<std::uint32_t> counted(where(), 1);
  graph const g = capture(q_, [&]() -> result<void> {
                    FERRY_CHECK(forked.record(q_));
                    FERRY_CHECK(forked.hold(side_));
                    FERRY_CHECK(place_.run(side_, grid, count_up{counted.data()}));
                    FERRY_CHECK(place_.run(q_, grid, pass_on{one_.data(), other_.data()}));
                    FERRY_CHECK(joined.record(side_));
                    FERRY_CHECK(joined.hold(q_));
                    return place_.run(q_, grid, pass_on{other_.data(), one_.data()});
                  }).value();
  EXPECT_EQ(counted.read().front(), 0u) << "a capture runs nothing";
  for (std::uint32_t launch = 1; launch <= 20; ++launch) {
    g.launch(launch % 2 ? q_ : side_).value();
    finish(launch % 2 ? q_ : side_);
    EXPECT_EQ(counted.read().front(), launch);
    EXPECT_EQ(one_.read().front(), 2 * launch);
  }
}

TEST_P(queue_contract, refuses_to_look_at_an_event_that_is_part_of_a_graph) {
  event inside = event::on(where()).value();
  result<bool> looked = true;
  graph const g = capture(q_, [&]() -> result<void> {
                    FERRY_CHECK(inside.record(q_));
                    looked = inside.happened();
                    return place_.run(q_, grid, count_up{one_.data()});
                  }).value();
  ASSERT_FALSE(looked);
  EXPECT_EQ(looked.error().code, error_code::invalid_state);
  EXPECT_EQ(inside.happened().error().code, error_code::invalid_state);
  g.launch(q_).value();
  finish(q_);
  EXPECT_EQ(one_.read().front(), 1u) << "the look did not spoil the capture";
}

TEST_P(queue_contract, wraps_a_stream_that_somebody_else_owns) {
  result<queue> wrapped = queue::wrap(where(), q_.stream());
  if (where().kind() == device_kind::emulated) {
    ASSERT_FALSE(wrapped);
    EXPECT_EQ(wrapped.error().code, error_code::invalid_argument);
    return;
  }
  ASSERT_TRUE(wrapped) << wrapped.error().message;
  place_.run(q_, grid, pass_on{one_.data(), other_.data()}).value();
  place_.run(*wrapped, grid, pass_on{other_.data(), one_.data()}).value();
  finish(*wrapped);
  EXPECT_EQ(one_.read().front(), 2u);
}

}  // namespace ferry::test
