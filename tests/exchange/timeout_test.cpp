// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Ranks that do not come: whoever waits learns whose fault it is, in time (rule R9).

#include "exchange/rank_threads.hpp"

#include <ferry/exchange.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <optional>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds deadline{300};

exchange_options options(reach via) {
  exchange_options o{.num_experts = 3,
                     .topk = 1,
                     .hidden = 8,
                     .max_tokens = 4,
                     .tokens = dtype::f32,
                     .wire = wire::f32,
                     .expert_rows = dtype::f32,
                     .combine_wire = wire::f32,
                     .output = dtype::f32};
  o.via = via;
  o.timeout = deadline;
  return o;
}

// One step of a rank whose tokens all go to `expert`; stops before call number `calls`.
struct stepper {
  exchange& ep;
  int expert;
  queue q;
  std::vector<float> rows = std::vector<float>(128, 1.0f);
  std::vector<std::int32_t> ids;

  stepper(exchange& e, int to) : ep(e), expert(to), ids(4, to) {}

  result<void> step(int calls = 4) {
    microbatch& slot = ep.microbatch(0);
    if (calls > 0) {
      result<void> const r = slot.dispatch_send(
          q, {.tokens = rows_of(rows.data(), 4, 8), .choices = dense(ids.data(), 4, 1)});
      if (!r) return r;
    }
    if (calls > 1) {
      result<received> const r = slot.dispatch_receive(q);
      if (!r) return r.error();
    }
    if (calls > 2) {
      result<void> const r = slot.combine_send(q, rows_of(rows.data(), 16, 8));
      if (!r) return r;
    }
    if (calls > 3) return slot.combine_receive(q, rows_of(rows.data(), 4, 8));
    return {};
  }
};

void check_failure(complaints& wrong, int rank, result<void> const& r, error_code code,
                   std::string const& named) {
  std::string const who = "rank " + std::to_string(rank) + ": ";
  if (r) return wrong.add(who + "no error");
  wrong.check(r.error().code == code && r.error().message.find(named) == 0,
              who + to_string(r.error().code) + ": " + r.error().message);
}

// Rank 2 stops before its call number `calls` of step 3. All tokens of all ranks go to expert
// `expert`, so that whoever waits for a rank other than rank 2 must look further.
void stop_rank_two(int calls, reach via, int expert) {
  complaints wrong;
  std::atomic<int> failed{0};
  run_ranks(3, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    result<exchange> ep = make_exchange(ranks, options(via));
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
    check_failure(wrong, ranks.rank(), r, error_code::timeout, "rank 2 did not come within 300 ms");
    wrong.check(took >= deadline - std::chrono::milliseconds(5), "too early");
    wrong.check(took < deadline + std::chrono::seconds(1), "too late");
    result<void> const again = steps.step();
    wrong.check(!again && again.error().code == error_code::invalid_state &&
                    again.error().message.find("rank 2") != std::string::npos,
                "the group is not broken");
    wrong.check(!ranks.barrier(), "the barrier of a broken group");
    ++failed;
  });
  EXPECT_TRUE(wrong.none()) << "stopped before call " << calls << ", expert " << expert << "\n"
                            << wrong.text();
}

TEST(exchange_timeout, blames_the_rank_that_stops_before_any_call_of_a_step) {
  for (int calls = 0; calls < 4; ++calls)
    for (int expert = 0; expert < 3; ++expert) stop_rank_two(calls, reach::mapped, expert);
}

TEST(exchange_timeout, blames_the_same_rank_through_a_network) {
  for (int calls = 0; calls < 4; ++calls) stop_rank_two(calls, reach::network, 0);
}

// Rank 0 waits only for rank 1's results, rank 1 for rank 2's, and rank 2 sleeps.
TEST(exchange_timeout, follows_the_chain_of_waits_to_the_rank_that_sleeps) {
  complaints wrong;
  std::atomic<int> failed{0};
  run_ranks(3, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange ep = make_exchange(ranks, options(reach::mapped)).value();
    stepper steps(ep, std::min(ranks.rank() + 1, 2));
    microbatch& slot = ep.microbatch(0);
    if (result<void> const r = steps.step(2); !r) return wrong.add(r.error().message);
    if (ranks.rank() == 2) {
      while (failed < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    // Rank 1 brings its own results home late: rank 0 is to wait for rank 1, which waits.
    const_tensor const made = rows_of(steps.rows.data(), 16, 8);
    result<void> r;
    if (ranks.rank() == 0) r = slot.combine_send(steps.q, made);
    if (r)
      r = ranks.rank() == 0 ? slot.combine_receive(steps.q, rows_of(steps.rows.data(), 4, 8))
                            : slot.combine(steps.q, made, rows_of(steps.rows.data(), 4, 8));
    if (ranks.rank() == 1) check_failure(wrong, 1, r, error_code::timeout, "rank 2 did not come");
    if (ranks.rank() == 0 && !r)
      check_failure(wrong, 0, r, error_code::timeout, "rank 2 did not come");
    // Rank 0 has what it needs of this step, and meets the chain in the next.
    if (ranks.rank() == 0 && r)
      check_failure(wrong, 0, steps.step(), error_code::timeout, "rank 2 did not come");
    ++failed;
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(exchange_timeout, tells_the_late_rank_that_the_others_gave_up) {
  complaints wrong;
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange_options o = options(reach::mapped);
    exchange ep = make_exchange(ranks, o).value();
    stepper steps(ep, 0);
    if (ranks.rank() == 1) std::this_thread::sleep_for(deadline * 2);
    result<void> const r = steps.step();
    if (ranks.rank() == 0)
      check_failure(wrong, 0, r, error_code::timeout, "rank 1 did not come");
    else
      check_failure(wrong, 1, r, error_code::timeout, "the other ranks gave up waiting");
    // Rank 0's group must last until rank 1 has looked.
    if (ranks.rank() == 0) std::this_thread::sleep_for(deadline * 2);
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(exchange_timeout, learns_at_once_that_a_rank_has_left) {
  complaints wrong;
  run_ranks(3, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange_options o = options(reach::mapped);
    o.timeout = std::chrono::seconds(10);
    exchange ep = make_exchange(ranks, o).value();
    if (ranks.rank() == 2) return;
    stepper steps(ep, 0);
    auto const start = clock::now();
    check_failure(wrong, ranks.rank(), steps.step(), error_code::unreachable, "rank 2 has left");
    wrong.check(clock::now() - start < std::chrono::seconds(2), "too late");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

// Messages say where: slot, chunk, epochs.
TEST(exchange_timeout, says_what_was_waited_for) {
  complaints wrong;
  std::atomic<bool> failed{false};
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange ep = make_exchange(ranks, options(reach::mapped)).value();
    stepper steps(ep, 1);
    if (ranks.rank() == 1) {
      steps.step(2).value();
      while (!failed) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    result<void> const r = steps.step();
    failed = true;
    if (r) return wrong.add("no error");
    for (char const* part :
         {"slot 0", "chunk 0", "back word of rank 1", "epoch 1 expected", "0 seen"})
      wrong.check(r.error().message.find(part) != std::string::npos, r.error().message);
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

// Two ranks take a step over a network with these faults. Both calls fail; one of them at least for
// the fault itself, the other perhaps for what became of its peer.
void expect_end(loopback_faults const& faults, error_code code) {
  complaints wrong;
  std::atomic<int> errors{0}, as_expected{0};
  run_ranks(2, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange_options o = options(reach::network);
    o.faults = faults;
    result<exchange> ep = make_exchange(ranks, o);
    if (!ep) return wrong.add(ep.error().message);
    stepper steps(*ep, 0);
    auto const start = clock::now();
    result<void> const r = steps.step();
    wrong.check(clock::now() - start < deadline + std::chrono::seconds(2), "too late");
    if (r) return wrong.add("no error");
    as_expected += r.error().code == code;
    wrong.check(r.error().code == code || r.error().code == error_code::timeout ||
                    r.error().code == error_code::unreachable,
                r.error().message);
    ++errors;
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
  EXPECT_EQ(errors, 2);
  EXPECT_GE(as_expected, 1);
}

// A signal that covers a lost row never comes, so the row is not missed in silence.
TEST(exchange_timeout, ends_when_the_network_loses_rows) {
  expect_end({.drop = 1024}, error_code::timeout);
}

TEST(exchange_timeout, ends_when_the_network_has_no_room) {
  expect_end({.try_again = 1024}, error_code::timeout);
}

TEST(exchange_timeout, ends_when_the_network_fails) {
  expect_end({.fail = 1024}, error_code::transport);
}

}  // namespace
