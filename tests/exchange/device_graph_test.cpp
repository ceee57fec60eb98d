// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Steps that are captured once and replayed, with other data each time.

#include "exchange/device_slot.hpp"
#include "exchange/random_world.hpp"

#include <ferry/exec/event.hpp>
#include <ferry/exec/graph.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using testing::HasSubstr;

constexpr int hidden = 20;
constexpr int most = 6;
constexpr int topk = 2;

exchange_options options(int experts, int slots) {
  exchange_options o{.num_experts = experts,
                     .topk = topk,
                     .hidden = hidden,
                     .max_tokens = most,
                     .tokens = dtype::f32,
                     .wire = wire::f32,
                     .expert_rows = dtype::f32,
                     .combine_wire = wire::f32,
                     .output = dtype::f32};
  o.num_microbatches = slots;
  o.block_teams = 1;
  return o;
}

// A step in device memory. Its experts are the identity, which stays in the graph: the inbox rows
// themselves are given to combine, and the weights tell choices apart.
struct captured_step {
  microbatch& slot;
  queue q;
  device_copies copies;
  std::vector<float> x = std::vector<float>(most * hidden), w = std::vector<float>(most * topk),
                     y = std::vector<float>(most * hidden);
  std::vector<std::int32_t> ids = std::vector<std::int32_t>(most * topk);
  float *x_there, *w_there, *y_there;
  std::int32_t *ids_there, *tokens_there;
  std::int32_t tokens = 0;

  captured_step(microbatch& s, device const& where)
      : slot(s), q(queue::on(where).value()), copies(where) {
    x_there = copies.there(x.data(), x.size());
    w_there = copies.there(w.data(), w.size());
    y_there = copies.there(y.data(), y.size());
    ids_there = copies.there(ids.data(), ids.size());
    tokens_there = copies.there(&tokens, 1);
  }

  result<void> calls(queue& on) {
    FERRY_TRY(received const in, slot.dispatch(on, {.tokens = rows_of(x_there, most, hidden),
                                                    .choices = dense(ids_there, most, topk),
                                                    .weights = dense(w_there, most, topk),
                                                    .num_tokens = tokens_there}));
    return slot.combine(on, in.rows, rows_of(y_there, most, hidden));
  }

  // Other data for the next replay.
  void draw(dice& from, int experts) {
    tokens = one_in(from, 4) ? 0 : pick(from, 0, most);
    for (float& v : x) v = static_cast<float>(pick(from, -50, 50));
    for (float& v : w) v = static_cast<float>(pick(from, 1, 9));
    for (std::int32_t& id : ids) id = pick(from, -1, experts - 1);
    std::fill(y.begin(), y.end(), -1.0f);
    q.copy(x_there, x.data(), x.size() * 4).value();
    q.copy(w_there, w.data(), w.size() * 4).value();
    q.copy(y_there, y.data(), y.size() * 4).value();
    q.copy(ids_there, ids.data(), ids.size() * 4).value();
    q.copy(tokens_there, &tokens, 4).value();
    q.wait(std::chrono::seconds(30)).value();
  }
  void check(complaints& wrong, std::string const& here) {
    copies.back(y.data(), y_there, y.size() * 4);
    for (int t = 0; t < most; ++t)
      for (int c = 0; c < hidden; ++c) {
        float want = 0;
        for (int k = 0; k < topk; ++k)
          if (ids[static_cast<std::size_t>(t * topk + k)] >= 0)
            want += w[static_cast<std::size_t>(t * topk + k)] *
                    x[static_cast<std::size_t>(t * hidden + c)];
        if (t >= tokens) want = -1;
        float const got = y[static_cast<std::size_t>(t * hidden + c)];
        if (got != want)
          wrong.add(here +
                    fmt::format("token {} of {} column {}: {}, not {}", t, tokens, c, got, want));
      }
  }
};

TEST(device_graph, replays_a_step_with_other_tokens_routes_and_counts_each_time) {
  constexpr int ranks = 4, experts = 7, turns = 60;
  complaints wrong;
  run_ranks(ranks, std::chrono::seconds(60), wrong, [&](group const& g) {
    device const where = device::open(g.rank() % 2 ? "emulated:64" : "emulated:32").value();
    exchange ep = make_exchange(g, where, options(experts, 1)).value();
    captured_step step(ep.microbatch(0), where);
    graph const replay = capture(step.q, [&] { return step.calls(step.q); }).value();
    wrong.check(ep.counters().steps == 0, "a capture ran something");
    dice from(static_cast<std::uint64_t>(g.rank()));
    for (int turn = 0; turn < turns; ++turn) {
      step.draw(from, experts);
      if (one_in(from, 10)) std::this_thread::sleep_for(std::chrono::microseconds(500));
      // Calls that are not captured fit in between.
      bool const plain = turn % 9 == 4;
      result<void> const put = plain ? step.calls(step.q) : replay.launch(step.q);
      if (!put) return wrong.add(put.error().message);
      if (result<void> const r = step.slot.wait(step.q); !r) return wrong.add(r.error().message);
      step.check(wrong, fmt::format("rank {} turn {}: ", g.rank(), turn));
    }
    wrong.check(ep.counters().steps == turns, "steps are counted on the device");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

// Two slots, each on a queue of its own, forked and joined within one graph.
TEST(device_graph, holds_two_slots_on_two_queues) {
  constexpr int ranks = 3, experts = 5, turns = 30;
  complaints wrong;
  run_ranks(ranks, std::chrono::seconds(60), wrong, [&](group const& g) {
    device const where = device::open("emulated:32").value();
    exchange ep = make_exchange(g, where, options(experts, 2)).value();
    captured_step first(ep.microbatch(0), where), second(ep.microbatch(1), where);
    event forked = event::on(where).value(), joined = event::on(where).value();
    graph const both = capture(first.q, [&]() -> result<void> {
                         FERRY_CHECK(forked.record(first.q));
                         FERRY_CHECK(forked.hold(second.q));
                         FERRY_CHECK(first.calls(first.q));
                         FERRY_CHECK(second.calls(second.q));
                         FERRY_CHECK(joined.record(second.q));
                         return joined.hold(first.q);
                       }).value();
    dice from(static_cast<std::uint64_t>(g.rank()) + 100);
    for (int turn = 0; turn < turns; ++turn) {
      first.draw(from, experts);
      second.draw(from, experts);
      both.launch(first.q).value();
      for (captured_step* step : {&first, &second})
        if (result<void> const r = step->slot.wait(first.q); !r)
          return wrong.add(r.error().message);
      first.check(wrong, fmt::format("rank {} turn {} slot 0: ", g.rank(), turn));
      second.check(wrong, fmt::format("rank {} turn {} slot 1: ", g.rank(), turn));
    }
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(device_graph, holds_whole_steps_only) {
  complaints wrong;
  run_ranks(1, std::chrono::seconds(20), wrong, [&](group const& g) {
    device const where = device::open("emulated:32").value();
    exchange ep = make_exchange(g, where, options(2, 1)).value();
    captured_step step(ep.microbatch(0), where);
    dispatch_input const in{.tokens = rows_of(step.x_there, most, hidden),
                            .choices = dense(step.ids_there, most, topk)};
    auto const begun = capture(step.q, [&] { return step.slot.dispatch_send(step.q, in); });
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().code, error_code::invalid_state);
    EXPECT_THAT(begun.error().message, HasSubstr("captured whole"));
    // The slot is as before.
    step.slot.dispatch_send(step.q, in).value();
    auto const ended = capture(step.q, [&]() -> result<void> {
      if (auto r = step.slot.dispatch_receive(step.q); !r) return r.error();
      return step.slot.release(step.q);
    });
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, error_code::invalid_state);
    EXPECT_THAT(ended.error().message, HasSubstr("captured whole"));
    step.slot.dispatch_receive(step.q).value();
    step.slot.release(step.q).value();
    step.slot.wait(step.q).value();
    // Nor may the host look at what has not run.
    auto const waited = capture(step.q, [&] { return step.slot.wait(step.q); });
    EXPECT_EQ(waited.error().code, error_code::invalid_state);
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

}  // namespace
