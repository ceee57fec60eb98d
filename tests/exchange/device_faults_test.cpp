// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What goes wrong on a device is told by the next call or by wait(), with the cause; the calls
// themselves never wait for it.

#include "exchange/device_slot.hpp"
#include "exchange/rank_threads.hpp"
#include "exchange/test_device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using testing::HasSubstr;
using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds deadline{400};

exchange_options options() {
  exchange_options o{.num_experts = 3,
                     .topk = 1,
                     .hidden = 8,
                     .max_tokens = 4,
                     .tokens = dtype::f32,
                     .wire = wire::f32,
                     .expert_rows = dtype::f32,
                     .combine_wire = wire::f32,
                     .output = dtype::f32};
  o.timeout = deadline;
  o.block_teams = 1;
  return o;
}

device where() {
  return test_device(0);
}

// Steps of a rank whose four tokens all go to `expert`.
struct stepper {
  exchange& ep;
  queue q = queue::on(where()).value();
  device_copies copies{where()};
  std::vector<float> host = std::vector<float>(8 * 64, 1.0f);
  float* rows = copies.there(host.data(), host.size());
  std::int32_t* ids;

  stepper(exchange& e, int expert) : ep(e) {
    std::vector<std::int32_t> const all(4, expert);
    ids = copies.there(all.data(), all.size());
  }
  dispatch_input input() const {
    return {.tokens = rows_of(rows, 4, 8), .choices = dense(ids, 4, 1)};
  }

  // Puts the first calls of a step on the queue.
  result<void> put(int calls = 4) {
    microbatch& slot = ep.microbatch(0);
    if (calls > 0) FERRY_CHECK(slot.dispatch_send(q, input()));
    if (calls > 1)
      if (result<received> const r = slot.dispatch_receive(q); !r) return r.error();
    if (calls > 2) FERRY_CHECK(slot.combine_send(q, rows_of(rows, 64, 8)));
    if (calls > 3) return slot.combine_receive(q, rows_of(rows, 4, 8));
    return {};
  }
  result<void> step(int calls = 4) {
    FERRY_CHECK(put(calls));
    return ep.microbatch(0).wait(q);
  }
};

void stop_rank_two(int calls, int expert) {
  complaints wrong;
  std::atomic<int> failed{0};
  run_ranks(3, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    result<exchange> ep = make_exchange(ranks, where(), options());
    if (!ep) return wrong.add(ep.error().message);
    stepper steps(*ep, expert);
    for (int i = 0; i < 2; ++i)
      if (result<void> const r = steps.step(); !r) return wrong.add(r.error().message);
    if (ranks.rank() == 2) {
      if (result<void> const r = steps.step(calls); !r) return wrong.add(r.error().message);
      while (failed < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    auto const start = clock::now();
    result<void> r = steps.step();
    if (r) r = steps.step();  // a step may still end without the last call of a peer
    auto const took = clock::now() - start;
    std::string const who = "rank " + std::to_string(ranks.rank()) + ": ";
    wrong.check(!r && r.error().code == error_code::timeout &&
                    r.error().message.find("rank 2 did not come within 400 ms") == 0,
                who + (r ? "no error" : r.error().message));
    wrong.check(took >= deadline - std::chrono::milliseconds(5), who + "too early");
    wrong.check(took < deadline + std::chrono::seconds(2), who + "too late");
    result<void> const again = steps.put();
    wrong.check(!again && again.error().code == error_code::invalid_state &&
                    again.error().message.find("rank 2") != std::string::npos,
                who + "the group is not broken");
    ++failed;
  });
  EXPECT_TRUE(wrong.none()) << "stopped before call " << calls << ", expert " << expert << "\n"
                            << wrong.text();
}

TEST(device_faults, blame_the_rank_that_stops_before_any_call_of_a_step) {
  for (int calls = 0; calls < 4; ++calls)
    for (int expert = 0; expert < 3; ++expert) stop_rank_two(calls, expert);
}

// Calls come back before their kernels have run, also when these will fail; the next call after
// that says so.
TEST(device_faults, never_hold_a_call_up_and_show_in_a_later_one) {
  complaints wrong;
  std::atomic<bool> done = false;
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange_options o = options();
    o.num_experts = 2;
    result<exchange> ep = make_exchange(ranks, where(), o);
    if (!ep) return wrong.add(ep.error().message);
    stepper steps(*ep, 1);
    if (ranks.rank() == 1) {
      while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    auto const start = clock::now();
    if (result<void> const r = steps.put(); !r) wrong.add(r.error().message);
    wrong.check(clock::now() - start < deadline / 2, "a call waited for its kernels");
    std::this_thread::sleep_for(deadline + std::chrono::milliseconds(300));
    result<void> const next = steps.put();
    wrong.check(!next && next.error().code == error_code::timeout &&
                    next.error().message.find("rank 1 did not come") == 0,
                next ? "no error" : next.error().message);
    done = true;
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(device_faults, tell_the_late_rank_that_the_others_gave_up) {
  complaints wrong;
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange_options o = options();
    o.num_experts = 2;
    result<exchange> ep = make_exchange(ranks, where(), o);
    if (!ep) return wrong.add(ep.error().message);
    stepper steps(*ep, 0);
    if (ranks.rank() == 1) std::this_thread::sleep_for(2 * deadline);
    result<void> r = steps.step();
    if (r) r = steps.step();
    std::string const want = ranks.rank() == 0 ? "rank 1 did not come" : "the other ranks gave up";
    wrong.check(!r && r.error().message.find(want) == 0, r ? "no error" : r.error().message);
    // Until both have looked, neither goes.
    static std::atomic<int> looked = 0;
    ++looked;
    while (looked < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

// On one rank, so that nothing else can go wrong.
template <class Body>
void alone(exchange_options o, Body const& body) {
  complaints wrong;
  run_ranks(1, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange ep = make_exchange(ranks, where(), o).value();
    stepper steps(ep, 0);
    body(ep, steps);
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(device_faults, report_once_what_found_no_room) {
  exchange_options o = options();
  o.capacity = 3;
  alone(o, [](exchange& ep, stepper& s) {
    microbatch& slot = ep.microbatch(0);
    for (int turn = 0; turn < 2; ++turn) {
      result<void> const r = s.step(2);
      ASSERT_FALSE(r);
      EXPECT_EQ(r.error().code, error_code::capacity);
      EXPECT_THAT(r.error().message, HasSubstr("expert 0 received 4 rows"));
      EXPECT_THAT(r.error().message, HasSubstr("room for 3"));
      EXPECT_TRUE(slot.wait(s.q)) << "told before";
      slot.combine(s.q, rows_of(s.rows, 3, 8), rows_of(s.rows, 4, 8)).value();
      slot.wait(s.q).value();
    }
  });
}

TEST(device_faults, report_token_counts_that_are_out_of_range_and_cut_them) {
  alone(options(), [](exchange& ep, stepper& s) {
    microbatch& slot = ep.microbatch(0);
    for (std::int32_t const given : {5, -1, 1 << 30, 4, 0}) {
      dispatch_input in = s.input();
      in.num_tokens = s.copies.there(&given, 1);
      received const view = slot.dispatch(s.q, in).value();
      result<void> const r = slot.wait(s.q);
      EXPECT_EQ(r.has_value(), given >= 0 && given <= 4) << given;
      if (!r) {
        EXPECT_EQ(r.error().code, error_code::invalid_argument);
        EXPECT_THAT(r.error().message, HasSubstr("num_tokens"));
      }
      std::int32_t end = -1;
      s.copies.back(&end, view.end, sizeof end);
      EXPECT_EQ(end, given < 0 ? 0 : std::min(given, 4)) << given;
      slot.release(s.q).value();
    }
    slot.wait(s.q).value();
  });
}

TEST(device_faults, refuse_a_queue_of_another_device) {
  alone(options(), [](exchange& ep, stepper& s) {
    queue cpu, wide = queue::on(device::open("emulated:64").value()).value();
    for (queue* q : {&cpu, &wide}) {
      result<void> const r = ep.microbatch(0).dispatch_send(*q, s.input());
      ASSERT_FALSE(r);
      EXPECT_EQ(r.error().code, error_code::invalid_argument);
      EXPECT_EQ(ep.microbatch(0).wait(*q).error().code, error_code::invalid_argument);
    }
    s.step().value();
  });
}

TEST(device_faults, refuse_too_few_rows_by_what_the_host_knows) {
  alone(options(), [](exchange& ep, stepper& s) {
    microbatch& slot = ep.microbatch(0);
    std::int64_t const capacity = slot.dispatch(s.q, s.input()).value().capacity;
    EXPECT_EQ(slot.combine_send(s.q, rows_of(s.rows, capacity - 1, 8)).error().code,
              error_code::invalid_argument);
    slot.combine_send(s.q, rows_of(s.rows, capacity, 8)).value();
    EXPECT_EQ(slot.combine_receive(s.q, rows_of(s.rows, 3, 8)).error().code,
              error_code::invalid_argument);
    slot.combine_receive(s.q, rows_of(s.rows, 4, 8)).value();
    slot.wait(s.q).value();
  });
}

TEST(device_faults, break_the_group_when_a_kernel_cannot_reach_its_memory) {
  if (on_gpu()) GTEST_SKIP() << "a GPU may reach memory of the host, or end the process";
  alone(options(), [](exchange& ep, stepper& s) {
    dispatch_input in = s.input();
    in.tokens = rows_of(s.host.data(), 4, 8);  // the host's
    result<void> const r = ep.microbatch(0).dispatch_send(s.q, in);
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::device);
    EXPECT_THAT(r.error().message, HasSubstr("memory of the host"));
    EXPECT_EQ(s.step().error().code, error_code::invalid_state);
  });
}

TEST(device_faults, refuse_more_waiting_blocks_than_half_of_what_the_device_holds) {
  if (on_gpu()) GTEST_SKIP() << "how many blocks a GPU holds differs";
  complaints wrong;
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange_options o = options();
    o.num_experts = 2;
    o.timeout = {};      // nobody is missing, and 8,192 lanes take their time on a loaded machine
    o.block_teams = 16;  // 128 blocks of 16 teams are there
    for (auto const& [blocks, slots] : {std::pair{16, 2}, std::pair{17, 2}, std::pair{11, 3}}) {
      o.blocks = blocks;
      o.num_microbatches = slots;
      result<exchange> const ep = make_exchange(ranks, where(), o);
      bool const fits = 2 * blocks * slots * 2 <= 128;
      wrong.check(ep.has_value() == fits, fmt::format("{} blocks, {} slots", blocks, slots));
      if (!ep) {
        wrong.check(ep.error().code == error_code::invalid_argument &&
                        ep.error().message.find("half of what") != std::string::npos,
                    ep.error().message);
      }
    }
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(device_faults, refuse_ranks_on_different_kinds_of_devices) {
  complaints wrong;
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange_options o = options();
    o.num_experts = 2;
    o.block_teams = 0;
    result<exchange> const ep = make_exchange(ranks, ranks.rank() == 0 ? device() : where(), o);
    wrong.check(!ep && ep.error().message.find("kind of device") != std::string::npos,
                ep ? "no error" : ep.error().message);
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(device_faults, refuse_options_that_a_device_cannot_have) {
  complaints wrong;
  run_ranks(1, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange_options o = options();
    o.block_teams = 32;
    EXPECT_THAT(make_exchange(ranks, where(), o).error().message, HasSubstr("at most"));
    o.block_teams = 2;
    EXPECT_THAT(make_exchange(ranks, o).error().message, HasSubstr("on the CPU"));
    o.via = reach::network;
    EXPECT_EQ(make_exchange(ranks, where(), o).error().code, error_code::unsupported);
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(device_exchange_counters, count_on_the_device_as_on_the_cpu) {
  alone(options(), [](exchange& ep, stepper& s) {
    for (int i = 0; i < 3; ++i) s.step().value();
    exchange_counters const c = ep.counters();
    EXPECT_EQ(c.steps, 3u);
    EXPECT_EQ(c.rows_received, 12u);
    EXPECT_EQ(c.dispatch_self_bytes, 12u * (8 * 4 + 8));
    EXPECT_EQ(c.dispatch_bytes, 0u);
  });
}

}  // namespace
