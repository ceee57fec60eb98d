// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// How often a row's bytes are read and written, counted instead of timed.

#include "kernels/counting_team.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

constexpr int num_ranks = 4, hidden = 256, tokens = 6, topk = 4;

// Each rank has two experts. How many ranks each token of rank 0 goes to: 4, 1, 0, 2, 3, 1.
std::vector<std::int32_t> const choices = {0,  2,  4,  6,   //
                                           2,  3,  -1, -1,  //
                                           -1, -1, -1, -1,  //
                                           6,  0,  7,  1,   //
                                           5,  0,  3,  2,   //
                                           4,  4,  5,  -1};
constexpr int num_destinations = 11;
// Choices that rank 2 serves, and the tokens they belong to.
constexpr int choices_of_two = 5, tokens_of_two = 3;

struct counted_step {
  world w;
  std::optional<all_ranks> ranks;
  std::vector<bf16> rows = std::vector<bf16>(tokens * hidden);
  std::vector<std::byte> scales = std::vector<std::byte>(tokens * 8);
  std::vector<float> weights = std::vector<float>(tokens * topk, 1.0f);

  explicit counted_step(wire sent, layout l = layout::grouped, bool mixed = false) {
    w.ranks = num_ranks;
    w.options = {
        .num_experts = 2 * num_ranks, .topk = topk, .hidden = hidden, .max_tokens = tokens};
    w.options.wire = sent;
    w.options.layout = l;
    w.options.num_microbatches = 1;
    if (sent == wire::opaque) {
      w.options.opaque_row_bytes = 2 * hidden;
      w.options.opaque_scale_bytes = 8;
    }
    w.fnuz.assign(num_ranks, false);
    w.fnuz[1] = w.fnuz[2] = mixed;
    ranks.emplace(w, code_level::v2);
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = from_float<bf16>(static_cast<float>(i % 113) - 50);
  }
  bool opaque() const { return w.options.wire == wire::opaque; }
  std::byte* row(int token) {
    return reinterpret_cast<std::byte*>(rows.data()) + token * row_bytes;
  }

  void send(copy_log& log) {
    dispatch_input in;
    in.tokens = opaque() ? const_tensor{row(0), tokens, row_bytes, dtype::byte, row_bytes}
                         : const_tensor(rows_of(rows.data(), tokens, hidden));
    in.choices = dense(choices.data(), tokens, topk);
    in.weights = dense<float const>(weights.data(), tokens, topk);
    if (opaque()) in.scales = dense<std::byte const>(scales.data(), tokens, 8);
    run_counted(*ranks, 0, ranks->sending(0, in), log);
    // The others bring nothing.
    in.tokens.rows = in.choices.rows = in.weights.rows = in.scales.rows = 0;
    copy_log ignored;
    for (int r = 1; r < num_ranks; ++r) run_counted(*ranks, r, ranks->sending(r, in), ignored);
  }
  void receive(copy_log& log) {
    for (int r = 0; r < num_ranks; ++r) {
      copy_log ignored;
      run_counted(*ranks, r, receive_rows{ranks->rank(r).frame(), 0}, r == 2 ? log : ignored);
    }
  }
  std::byte const* inbox(int d, slot_field field, int token) {
    return ranks->rank(d).window.data() + ranks->rank(0).frame().at(field, 0, token);
  }

  static constexpr int row_bytes = 2 * hidden;
};

std::size_t inboxes_written(counted_step& s, copy_log const& log, slot_field field) {
  std::size_t sum = 0;
  for (int d = 0; d < num_ranks; ++d)
    sum += log.into(s.inbox(d, field, 0), s.inbox(d, field, tokens));
  return sum;
}

TEST(copies, sending_fetches_each_row_once_and_writes_it_once_for_each_destination) {
  for (wire w : {wire::bf16, wire::opaque}) {
    counted_step s(w);
    copy_log log;
    s.send(log);
    constexpr std::size_t row = counted_step::row_bytes;
    // Token 2 goes nowhere and is not even read.
    EXPECT_EQ(log.fetched_from(s.row(0), s.row(tokens)), 5 * row);
    EXPECT_EQ(inboxes_written(s, log, slot_field::rows), num_destinations * row);
    std::size_t const scales = w == wire::opaque ? num_destinations * 8 : 0;
    EXPECT_EQ(inboxes_written(s, log, slot_field::scales), scales);
    EXPECT_EQ(inboxes_written(s, log, slot_field::routes), num_destinations * route_bytes(topk));
    // Straight from the caller's memory: nothing is copied into the scratch on the way.
    EXPECT_EQ(log.out_of(s.row(0), s.row(tokens)), num_destinations * row);
  }
}

// A row that is spoilt after its first copy still arrives everywhere as it was.
TEST(copies, quantised_sending_reads_each_row_once) {
  for (auto const& [w, mixed] : {std::pair{wire::fp8_e4m3, false},
                                 {wire::fp8_e4m3, true},
                                 {wire::fp8_e4m3fnuz, false},
                                 {wire::fp8_ue8m0, true}}) {
    counted_step s(w, layout::grouped, mixed);
    counted_step untouched(w, layout::grouped, mixed);
    copy_log log, plain;
    untouched.send(plain);
    auto const token_of = [&](copied_row const& c) {
      for (int d = 0; d < num_ranks; ++d)
        for (int t = 0; t < tokens; ++t)
          if (c.to == s.inbox(d, slot_field::rows, t)) return t;
      return -1;
    };
    log.after_copy = [&](copied_row const& c) {
      if (int const t = token_of(c); t >= 0) std::memset(s.row(t), 0x41, counted_step::row_bytes);
    };
    s.send(log);
    EXPECT_EQ(log.out_of(s.row(0), s.row(tokens)), 0u) << "rows go through the scratch";
    EXPECT_EQ(inboxes_written(s, log, slot_field::rows), std::size_t{num_destinations} * hidden);
    for (int d = 0; d < num_ranks; ++d)
      for (int t = 0; t < tokens; ++t)
        EXPECT_EQ(std::memcmp(s.inbox(d, slot_field::rows, t),
                              untouched.inbox(d, slot_field::rows, t), hidden),
                  0)
            << "rank " << d << " token " << t;
  }
}

TEST(copies, in_place_moves_no_row_on_the_receiver) {
  counted_step s(wire::bf16, layout::in_place);
  copy_log sent, log;
  s.send(sent);
  s.receive(log);
  EXPECT_TRUE(log.rows.empty());
  EXPECT_EQ(*s.ranks->rank(2).memory().end, choices_of_two);
}

TEST(copies, other_layouts_move_each_row_once_for_each_local_choice) {
  for (layout l : {layout::grouped, layout::padded})
    for (wire w : {wire::bf16, wire::fp8_e4m3}) {
      counted_step s(w, l);
      copy_log sent, log;
      s.send(sent);
      s.receive(log);
      std::size_t const row = w == wire::bf16 ? 2 * hidden : hidden,
                        scales = w == wire::bf16 ? 0 : 8;
      EXPECT_EQ(log.out_of(s.inbox(2, slot_field::rows, 0), s.inbox(2, slot_field::rows, tokens)),
                choices_of_two * row);
      EXPECT_EQ(
          log.fetched_from(s.inbox(2, slot_field::rows, 0), s.inbox(2, slot_field::rows, tokens)),
          tokens_of_two * row);
      std::size_t all = 0;
      for (copied_row const& c : log.rows) all += c.bytes;
      EXPECT_EQ(all, choices_of_two * (row + scales));
    }
}

TEST(copies, sums_of_tokens_go_home_in_one_copy_from_where_they_lie) {
  counted_step s(wire::bf16, layout::in_place);
  copy_log sent, received, log;
  s.send(sent);
  s.receive(received);
  std::vector<bf16> sums(num_ranks * tokens * hidden);
  auto const* bytes = reinterpret_cast<std::byte const*>(sums.data());
  run_counted(*s.ranks, 2,
              return_rows{.frame = s.ranks->rank(2).frame(),
                          .rows = bytes,
                          .row_stride = 2 * hidden,
                          .type = dtype::bf16,
                          .summed = true},
              log);
  EXPECT_EQ(log.rows.size(), std::size_t{tokens_of_two});
  EXPECT_EQ(log.out_of(bytes, bytes + 2 * sums.size()), std::size_t{tokens_of_two} * 2 * hidden);
}

}  // namespace
