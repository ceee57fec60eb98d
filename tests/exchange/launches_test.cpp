// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Which kernels a call launches, and what they do to peers' windows once their rank has given up.

#include "exchange/bare_ranks.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

constexpr int hidden = 8;

exchange_options options(int slots) {
  exchange_options o{.num_experts = 2,
                     .topk = 1,
                     .hidden = hidden,
                     .max_tokens = 4,
                     .tokens = dtype::f32,
                     .wire = wire::f32,
                     .expert_rows = dtype::f32,
                     .combine_wire = wire::f32,
                     .output = dtype::f32};
  o.num_microbatches = slots;
  o.timeout = std::chrono::milliseconds(60);
  return o;
}

struct step_rows {
  std::vector<float> x = std::vector<float>(4 * hidden, 3.0f);
  std::vector<float> made = std::vector<float>(8 * hidden, 5.0f);
  std::vector<float> y = std::vector<float>(4 * hidden, -1.0f);
  std::vector<std::int32_t> ids = {0, 1, 0, 1};

  dispatch_input input(int tokens) const {
    return {.tokens = rows_of(x.data(), tokens, hidden), .choices = dense(ids.data(), tokens, 1)};
  }
};

// Launches so far, by kernel.
struct launches {
  int send = 0, receive = 0, credit = 0, give_back = 0, gather = 0;
  bool operator==(launches const&) const = default;
};
launches seen;
std::vector<int> blocks_seen;

cpu_kernels const& real_kernels() {
  return cpu_kernels_for(best_code_level());
}
template <auto Kernel, int launches::*Count, class Args>
void counted(cpu_launch const& with, Args const& args) {
  ++(seen.*Count);
  blocks_seen.push_back(with.blocks);
  (real_kernels().*Kernel)(with, args);
}
constexpr cpu_kernels counting{counted<&cpu_kernels::send, &launches::send, send_rows>,
                               counted<&cpu_kernels::receive, &launches::receive, receive_rows>,
                               counted<&cpu_kernels::credit, &launches::credit, credit_round>,
                               counted<&cpu_kernels::give_back, &launches::give_back, return_rows>,
                               counted<&cpu_kernels::gather, &launches::gather, gather_rows>};

// Launches of one step of `tokens` tokens on a rank that is alone.
launches launched_by_a_step(bare_ranks& ranks, int tokens) {
  seen = {};
  step_rows rows;
  bare_rank& r = ranks[0];
  received const in = r.slots[0].dispatch(r.work_queue, rows.input(tokens)).value();
  EXPECT_EQ(in.counts[0] + in.counts[1], tokens);
  r.slots[0]
      .combine(r.work_queue, rows_of(rows.made.data(), *in.end, hidden),
               rows_of(rows.y.data(), tokens, hidden))
      .value();
  for (int i = 0; i < tokens * hidden; ++i) EXPECT_EQ(rows.y[static_cast<std::size_t>(i)], 5.0f);
  return seen;
}

TEST(launches, are_those_of_the_rounds_that_a_step_takes) {
  exchange_options o = options(1);
  o.round_tokens = 1;
  bare_ranks ranks(o, 1, counting);
  launches const one_round{.send = 1, .receive = 1, .credit = 1, .give_back = 1, .gather = 1};
  EXPECT_EQ(launched_by_a_step(ranks, 1), one_round);
  EXPECT_EQ(launched_by_a_step(ranks, 0), one_round);
  // A round of combine says by a header that its array is free.
  launches const three{.send = 6, .receive = 3, .credit = 3, .give_back = 3, .gather = 3};
  EXPECT_EQ(launched_by_a_step(ranks, 3), three);
  EXPECT_EQ(launched_by_a_step(ranks, 1), one_round);
}

// Each call may have its own budget; a rank alone sees that its results stay.
TEST(launches, have_as_many_blocks_as_their_call_asks_for) {
  exchange_options o = options(1);
  o.blocks = 4;
  bare_ranks ranks(o, 1, counting);
  bare_rank& r = ranks[0];
  step_rows rows;
  for (int step = 0; step < 12; ++step) {
    int const send = step % 5, receive = (step + 1) % 5, home = (step + 3) % 5;
    auto const count = [](int asked) { return asked ? asked : 4; };
    blocks_seen.clear();
    std::fill(rows.y.begin(), rows.y.end(), -1.0f);
    r.slots[0].dispatch_send(r.work_queue, rows.input(4), {.blocks = send}).value();
    received const in = r.slots[0].dispatch_receive(r.work_queue, {.blocks = receive}).value();
    EXPECT_EQ(in.counts[0] + in.counts[1], 4);
    r.slots[0]
        .combine(r.work_queue, rows_of(rows.made.data(), *in.end, hidden),
                 rows_of(rows.y.data(), 4, hidden), {}, {.blocks = home})
        .value();
    EXPECT_EQ(blocks_seen,
              (std::vector<int>{count(send), count(receive), count(home), count(home)}));
    for (float const y : rows.y) EXPECT_EQ(y, 5.0f) << "step " << step;
  }
}

TEST(launches, need_no_credit_where_steps_have_one_round) {
  bare_ranks ranks(options(1), 1, counting);
  EXPECT_EQ(launched_by_a_step(ranks, 4),
            (launches{.send = 1, .receive = 1, .give_back = 1, .gather = 1}));
}

// Slot 1 of rank 0 has results to return, slot 2 a step to send. Slot 0 has waited for rank 1 in
// vain, or has not waited.
struct rank_in_the_middle {
  step_rows rows;
  bare_ranks ranks{options(3), 2};
  bare_rank &own = ranks[0], &peer = ranks[1];
  dispatch_input input;
  const_tensor made = rows_of(rows.made.data(), 8, hidden);
  std::vector<std::byte> before;

  rank_in_the_middle(int tokens, bool gives_up) : input(rows.input(tokens)) {
    for (std::size_t slot : {0u, 1u}) own.slots[slot].dispatch_send(own.work_queue, input).value();
    peer.slots[1].dispatch_send(peer.work_queue, input).value();
    own.slots[1].dispatch_receive(own.work_queue).value();
    if (gives_up) {
      result<received> const r = own.slots[0].dispatch_receive(own.work_queue);
      EXPECT_TRUE(!r && r.error().code == error_code::timeout);
    }
    before = ranks.bytes_of(1);
  }
  bool peer_was_written() const { return ranks.bytes_of(1) != before; }

  // What a call launches that was under way already.
  void return_from_slot_one() {
    real_kernels().give_back(own.launch_of(1), {.frame = own.states[1]->frame,
                                                .rows = made.data,
                                                .row_stride = made.stride_bytes(),
                                                .type = made.type});
  }
  void send_from_slot_two() {
    send_rows sending = own.states[1]->sending;
    sending.frame = own.states[2]->frame;
    real_kernels().send(own.launch_of(2), sending);
  }
};

// R9: a rank that gave up stores nothing more, from no slot. One that did not does.
TEST(launches, store_nothing_in_a_peer_after_another_slot_gave_up) {
  for (int tokens : {0, 4})
    for (bool gives_up : {true, false}) {
      rank_in_the_middle returns(tokens, gives_up), sends(tokens, gives_up);
      returns.return_from_slot_one();
      sends.send_from_slot_two();
      EXPECT_NE(returns.peer_was_written(), gives_up) << tokens << " tokens";
      EXPECT_NE(sends.peer_was_written(), gives_up) << tokens << " tokens";
      EXPECT_EQ(sends.own.states[2]->waits->failed(), gives_up);
      if (gives_up) {
        EXPECT_EQ(sends.own.states[2]->waits->what_failed().slot, 0) << "for want of its own";
      }
    }
}

TEST(launches, are_none_after_another_slot_gave_up) {
  rank_in_the_middle r(4, true);
  result<void> const returned = r.own.slots[1].combine_send(r.own.work_queue, r.made);
  ASSERT_FALSE(returned);
  EXPECT_EQ(returned.error().code, error_code::invalid_state);
  result<void> const sent = r.own.slots[2].dispatch_send(r.own.work_queue, r.input);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, error_code::invalid_state);
  EXPECT_FALSE(r.peer_was_written());
}

}  // namespace
