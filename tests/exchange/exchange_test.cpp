// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exchange.hpp>

#include "exchange/lone_rank.hpp"

#include <limits>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using testing::HasSubstr;

TEST(exchange, takes_nothing_at_all_for_zero_tokens) {
  exchange_options o = small();
  o.tokens = dtype::bf16;
  lone_rank rank(o);
  result<received> const in = rank.slot().dispatch(rank.q, {});
  ASSERT_TRUE(in) << in.error().message;
  EXPECT_EQ(*in->end, 0);
  EXPECT_EQ(in->counts[0] + in->counts[1] + in->counts[2], 0);
  small_step step;
  ASSERT_TRUE(rank.slot().combine(rank.q, step.results(0), step.output(0)));
  EXPECT_EQ(step.y[0], -1.0f);
}

TEST(exchange, counts_traffic_and_ids_that_name_no_expert) {
  complaints wrong;
  run_ranks(2, long_enough, wrong, [&](group const& ranks) {
    exchange_options o = small();
    o.num_experts = 4;
    exchange ep = make_exchange(ranks, o).value();
    queue q;
    small_step step;
    // Expert 0 and 1 live on rank 0; 4 and -2 are nobody.
    step.ids = {0, 3, 4, -1, -2, 2};
    ep.microbatch(0).dispatch(q, step.input()).value();
    ep.microbatch(0).combine(q, step.results(6), step.output()).value();
    exchange_counters const n = ep.counters();
    std::uint64_t const record = 5 * 4 + 2 * 8, home = 5 * 4;
    std::uint64_t const to_zero = 1, to_one = 2;
    std::uint64_t const self = ranks.rank() == 0 ? to_zero : to_one, other = 3 - self;
    wrong.check(n.steps == 1, "steps");
    wrong.check(n.ids_out_of_range == 2, "ids out of range");
    wrong.check(n.dispatch_self_bytes == self * record, "own records");
    wrong.check(n.dispatch_bytes == other * record, "others' records");
    wrong.check(n.combine_self_bytes == self * home, "own results");
    wrong.check(n.combine_bytes == self * home, "others' results");
    wrong.check(n.rows_received == 2 * self, "rows received");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(exchange, names_the_owner_of_every_expert) {
  exchange_options o = small();
  lone_rank rank(o);
  EXPECT_EQ(rank.ep->first_expert(0), 0);
  EXPECT_EQ(rank.ep->first_expert(1), 3);
  EXPECT_EQ(rank.ep->num_microbatches(), 2);
  EXPECT_EQ(rank.ep->options().hidden, 5);
  EXPECT_EQ(rank.ep->ranks().size(), 1);
}

// Every rank learns of it, and the group lives on.
void expect_all_refuse(std::function<void(exchange_options&)> const& change,
                       std::vector<std::string> const& parts) {
  complaints wrong;
  run_ranks(3, long_enough, wrong, [&](group const& ranks) {
    exchange_options o = small();
    if (ranks.rank() == 1) change(o);
    result<exchange> const made = make_exchange(ranks, o);
    if (made) return wrong.add("it was made");
    wrong.check(made.error().code == error_code::invalid_argument, "code");
    for (std::string const& part : parts)
      wrong.check(made.error().message.find(part) != std::string::npos, made.error().message);
    wrong.check(ranks.barrier().has_value(), "the group is broken");
    wrong.check(make_exchange(ranks, small()).has_value(), "a second try fails");
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
}

TEST(exchange, refuses_options_that_differ_between_ranks_on_all_of_them) {
  using options = exchange_options;
  expect_all_refuse([](options& o) { o.num_experts = 7; }, {"num_experts", "3", "7", "rank 1"});
  expect_all_refuse([](options& o) { o.topk = 1; }, {"topk", "1", "2"});
  expect_all_refuse([](options& o) { o.hidden = 6; }, {"hidden", "5", "6"});
  expect_all_refuse([](options& o) { o.max_tokens = 9; }, {"max_tokens", "4", "9"});
  expect_all_refuse([](options& o) { o.wire = wire::bf16; }, {"wire"});
  expect_all_refuse([](options& o) { o.combine_wire = wire::bf16; }, {"combine_wire"});
  expect_all_refuse([](options& o) { o.reduction = reduction::per_choice; }, {"reduction"});
  expect_all_refuse([](options& o) { o.num_microbatches = 3; }, {"num_microbatches", "3"});
  expect_all_refuse([](options& o) { o.round_tokens = 2; }, {"round_tokens", "2"});
  expect_all_refuse([](options& o) { o.chunk_tokens = 2; }, {"chunk_tokens", "2"});
  expect_all_refuse([](options& o) { o.via = reach::network; }, {"via"});
  expect_all_refuse([](options& o) { o.hops = hops::two; }, {"hops", "0", "2"});
}

TEST(exchange, tells_all_ranks_when_one_refuses_its_own_options) {
  expect_all_refuse([](exchange_options& o) { o.topk = 33; }, {"topk is 33"});
  expect_all_refuse([](exchange_options& o) { o.capacity = -1; }, {"capacity is -1"});
  expect_all_refuse(
      [](exchange_options& o) {
        o.layout = layout::padded;
        o.capacity = INT32_MAX;
        o.num_experts = 9;
      },
      {"positions"});
}

// What a window may take: slots times M records and rows per rank, flags of 64 bytes for each rank,
// chunk and slot, and a page.
TEST(exchange, asks_for_no_more_window_than_records_rows_and_flags) {
  auto const up = [](std::size_t n) { return (n + 63) / 64 * 64; };
  for (int ranks : {1, 2, 8, 9, 16})
    for (int tokens : {16, 17, 128, 1024, 4096})
      for (int topk : {1, 6, 8})
        for (auto sent : {wire::bf16, wire::fp8_e4m3})
          for (auto home : {reduction::per_rank, reduction::per_choice}) {
            exchange_options o{
                .num_experts = 256, .topk = topk, .hidden = 7168, .max_tokens = tokens};
            o.wire = sent;
            o.reduction = home;
            auto const m = static_cast<std::size_t>(tokens), r = static_cast<std::size_t>(ranks);
            auto const k = static_cast<std::size_t>(topk);
            std::size_t const row = sent == wire::bf16 ? 7168 * 2 : 7168 + 56 * 4;
            std::size_t const h = home == reduction::per_rank ? r : k;
            std::size_t const chunks = (m + 15) / 16;
            auto const slots = static_cast<std::size_t>(o.num_microbatches);
            std::size_t const most = slots * m * (r * up(row + k * 8) + h * up(7168 * 2)) +
                                     64 * r * chunks * slots + 4096;
            std::size_t const bytes = window_bytes(o, ranks).value();
            EXPECT_LE(bytes, most) << ranks << " ranks, " << tokens << " tokens, top-" << topk;
            EXPECT_GE(bytes, slots * m * (r * (row + k * 8) + h * 7168 * 2));
          }
}

TEST(exchange, refuses_a_window_that_no_address_space_holds) {
  exchange_options o{
      .num_experts = 65536, .topk = 32, .hidden = 1 << 24, .max_tokens = (1 << 24) - 1};
  o.wire = wire::f32;
  o.combine_wire = wire::f32;
  for (int slots : {1, 2, 64}) {
    o.num_microbatches = slots;
    result<std::size_t> const bytes = window_bytes(o, 65536);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code, error_code::invalid_argument);
    EXPECT_THAT(bytes.error().message, HasSubstr("65536 ranks"));
  }
  EXPECT_FALSE(window_bytes(small(), 0));
}

TEST(exchange, passes_infinities_and_nan_on_as_they_are) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  lone_rank rank(small());
  small_step step;
  step.ids = {0, -1, 1, -1, 2, -1};
  for (int i = 0; i < 15; ++i) step.x[static_cast<std::size_t>(i)] = 1;
  step.x[1] = inf;
  step.x[7] = -inf;
  step.x[13] = nan;
  received const in = rank.slot().dispatch(rank.q, step.input()).value();
  for (int p = 0; p < 3; ++p) {
    ASSERT_EQ(std::memcmp(in.rows[p], step.x.data() + p * 5, 5 * sizeof(float)), 0) << "row " << p;
    std::memcpy(&step.made[static_cast<std::size_t>(p * 5)], in.rows[p], 20);
  }
  ASSERT_TRUE(rank.slot().combine(rank.q, step.results(3), step.output()));
  EXPECT_EQ(step.y[1], inf);
  EXPECT_EQ(step.y[7], -inf);
  EXPECT_TRUE(std::isnan(step.y[13]));
  EXPECT_EQ(step.y[0], 0.5f);
  EXPECT_EQ(step.y[14], 0.5f);
}

// No code means NaN in both flavours of fp8, so a block's scale does, and the block is lost as a
// whole; the next block is not.
TEST(exchange, passes_nan_on_in_the_scale_of_rows_for_both_flavours) {
  for (bool fnuz : {false, true}) {
    exchange_options o = small();
    o.hidden = 130;
    o.topk = 1;
    o.wire = wire::fp8_ue8m0;
    o.fp8 = fnuz ? fp8_flavour::fnuz : fp8_flavour::ocp;
    lone_rank rank(o);
    std::vector<float> x(2 * 130, 2.0f), made(2 * 130), y(2 * 130);
    x[7] = std::numeric_limits<float>::quiet_NaN();
    x[130 + 129] = -std::numeric_limits<float>::infinity();
    std::vector<std::int32_t> const ids = {0, 2};
    received const in = rank.slot()
                            .dispatch(rank.q, {.tokens = rows_of(x.data(), 2, 130),
                                               .choices = dense(ids.data(), 2, 1)})
                            .value();
    EXPECT_EQ(in.rows.type, fnuz ? dtype::e4m3fnuz : dtype::e4m3);
    for (int p = 0; p < 2; ++p) {
      std::vector<float> const row =
          out_of_wire(in.rows[p], in.scales[p], o.wire, in.rows.type, 130);
      std::copy(row.begin(), row.end(), made.begin() + p * 130);
    }
    ASSERT_TRUE(
        rank.slot().combine(rank.q, rows_of(made.data(), 2, 130), rows_of(y.data(), 2, 130)));
    for (int c = 0; c < 130; ++c) {
      auto const i = static_cast<std::size_t>(c);
      EXPECT_EQ(std::isnan(y[i]), c < 128) << "column " << c;
      EXPECT_FALSE(std::isnan(y[130 + i])) << "column " << c;
      if (c >= 128) {
        EXPECT_EQ(y[i], 2.0f) << "column " << c;
      }
      if (c < 128) {
        EXPECT_EQ(y[130 + i], 2.0f) << "column " << c;
      }
    }
    // An infinity is the largest number of its block.
    EXPECT_TRUE(std::isfinite(y[130 + 129]));
    EXPECT_LT(y[130 + 129], 0.0f);
  }
}

}  // namespace
