// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exchange.hpp>

#include "exchange/rank_run.hpp"

#include <gmock/gmock.h>

#include <limits>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using testing::HasSubstr;

constexpr std::chrono::milliseconds long_enough{20000};

// A group of one rank meets nobody: every call can be tried from one thread.
struct lone_rank {
  group ranks;
  std::optional<exchange> ep;
  queue q;

  explicit lone_rank(exchange_options const& o)
      : ranks(join(ferry::threads(1).rank(0)).value()), q(queue::cpu(o.blocks).value()) {
    ep.emplace(make_exchange(ranks, o).value());
  }
  microbatch& slot(int i = 0) { return ep->microbatch(i); }
};

exchange_options small() {
  return {.num_experts = 3,
          .topk = 2,
          .hidden = 5,
          .max_tokens = 4,
          .tokens = dtype::f32,
          .wire = wire::f32,
          .expert_rows = dtype::f32,
          .combine_wire = wire::f32,
          .output = dtype::f32};
}

// Valid arguments for small(): three tokens.
struct small_step {
  std::vector<float> x = std::vector<float>(64, 1.0f);
  std::vector<std::int32_t> ids = {0, 1, 2, -1, 1, 1, 0, 0, 0, 0, 0, 0};
  std::vector<float> w = std::vector<float>(16, 0.5f);
  std::vector<float> made = std::vector<float>(64, 2.0f);
  std::vector<float> y = std::vector<float>(64, -1.0f);

  dispatch_input input(std::int64_t tokens = 3) {
    return {.tokens = rows_of(x.data(), tokens, 5),
            .choices = dense(ids.data(), tokens, 2),
            .weights = dense(w.data(), tokens, 2)};
  }
  tensor results(std::int64_t rows = 5) { return rows_of(made.data(), rows, 5); }
  tensor output(std::int64_t rows = 3) { return rows_of(y.data(), rows, 5); }
};

void expect_refused(result<void> const& r, error_code code, std::vector<std::string> const& parts) {
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, code) << r.error().message;
  for (std::string const& part : parts) EXPECT_THAT(r.error().message, HasSubstr(part));
}

void run_rest(lone_rank& rank, small_step& step) {
  ASSERT_TRUE(rank.slot().dispatch_receive(rank.q));
  ASSERT_TRUE(rank.slot().combine(rank.q, step.results(), step.output()));
  // Each result is 2, each weight a half, and token 1 has one choice.
  EXPECT_EQ(step.y[0], 2.0f);
  EXPECT_EQ(step.y[5], 1.0f);
  EXPECT_EQ(step.y[14], 2.0f);
  EXPECT_EQ(step.y[15], -1.0f);
}

struct refusal {
  char const* what;
  void (*spoil)(small_step&, dispatch_input&);
  std::vector<std::string> parts;
};

TEST(exchange, refuses_input_that_does_not_fit_and_stays_as_it_was) {
  using in = dispatch_input;
  refusal const cases[] = {
      {"too many tokens", [](small_step& s, in& i) { i = s.input(5); }, {"5 tokens", "allows 4"}},
      {"negative", [](small_step&, in& i) { i.tokens.rows = -2; }, {"tokens", "-2"}},
      {"columns", [](small_step&, in& i) { i.tokens.columns = 6; }, {"6 columns", "for 5"}},
      {"no columns", [](small_step&, in& i) { i.tokens.columns = 0; }, {"0 columns", "for 5"}},
      {"type", [](small_step&, in& i) { i.tokens.type = dtype::bf16; }, {"bf16", "f32"}},
      {"no address", [](small_step&, in& i) { i.tokens.data = nullptr; }, {"tokens", "3 rows"}},
      {"short stride", [](small_step&, in& i) { i.tokens.row_stride_bytes = 16; }, {"16", "20"}},
      {"backwards", [](small_step&, in& i) { i.tokens.row_stride_bytes = -20; }, {"-20", "20"}},
      {"odd stride", [](small_step&, in& i) { i.tokens.row_stride_bytes = 22; }, {"22", "4 bytes"}},
      {"odd address", [](small_step&, in& i) { i.tokens.data += 2; }, {"address", "4 bytes"}},
      {"id type",
       [](small_step& s, in& i) {
         i.choices = dense(reinterpret_cast<std::int64_t const*>(s.ids.data()), 3, 2);
       },
       {"int64", "int32"}},
      {"fewer ids", [](small_step&, in& i) { i.choices.rows = 2; }, {"[2, 2]", "[3, 2]"}},
      {"other top-k", [](small_step&, in& i) { i.choices.columns = 3; }, {"[3, 3]", "[3, 2]"}},
      {"no ids", [](small_step&, in& i) { i.choices.data = nullptr; }, {"choices", "no address"}},
      {"id stride", [](small_step&, in& i) { i.choices.row_stride = 1; }, {"choices", "1", "2"}},
      {"id address",
       [](small_step& s, in& i) { i.choices.data = reinterpret_cast<char*>(s.ids.data()) + 1; },
       {"choices", "address", "4 bytes"}},
      {"fewer weights", [](small_step&, in& i) { i.weights.rows = 1; }, {"[1, 2]", "[3, 2]"}},
      {"more weights", [](small_step&, in& i) { i.weights.columns = 4; }, {"[3, 4]", "[3, 2]"}},
      {"weight stride", [](small_step&, in& i) { i.weights.row_stride = 0; }, {"weights", "0"}},
      {"weight address",
       [](small_step& s, in& i) {
         i.weights.data = reinterpret_cast<float*>(reinterpret_cast<char*>(s.w.data()) + 2);
       },
       {"weights", "address", "4 bytes"}},
      {"scales",
       [](small_step& s, in& i) {
         i.scales = {reinterpret_cast<std::byte const*>(s.x.data()), 3, 4, 4};
       },
       {"scales"}},
  };
  lone_rank rank(small());
  small_step step;
  for (refusal const& c : cases) {
    SCOPED_TRACE(c.what);
    dispatch_input input = step.input();
    c.spoil(step, input);
    expect_refused(rank.slot().dispatch_send(rank.q, input), error_code::invalid_argument, c.parts);
    EXPECT_FALSE(rank.slot().dispatch(rank.q, input));
  }
  ASSERT_TRUE(rank.slot().dispatch_send(rank.q, step.input()));
  run_rest(rank, step);
}

TEST(exchange, refuses_a_token_count_in_memory_that_is_out_of_range) {
  lone_rank rank(small());
  small_step step;
  for (std::int32_t const tokens : {-1, 4, 1 << 30}) {
    dispatch_input input = step.input();
    input.num_tokens = &tokens;
    expect_refused(rank.slot().dispatch_send(rank.q, input), error_code::invalid_argument,
                   {std::to_string(tokens), "3 rows", "allows 4"});
  }
  // More rows than max_tokens are fine as long as the count is not.
  std::int32_t const tokens = 3;
  dispatch_input input = step.input(6);
  input.num_tokens = &tokens;
  ASSERT_TRUE(rank.slot().dispatch_send(rank.q, input));
  run_rest(rank, step);
}

TEST(exchange, refuses_calls_out_of_order_at_every_stage_and_stays_as_it_was) {
  lone_rank rank(small());
  small_step step;
  microbatch& slot = rank.slot(1);
  struct call {
    char const* name;
    std::function<result<void>()> run;
    int stage;
  };
  std::vector<call> const calls = {
      {"dispatch_send", [&] { return slot.dispatch_send(rank.q, step.input()); }, 0},
      {"dispatch_receive",
       [&]() -> result<void> {
         auto r = slot.dispatch_receive(rank.q);
         if (!r) return r.error();
         return {};
       },
       1},
      {"combine_send", [&] { return slot.combine_send(rank.q, step.results()); }, 2},
      {"release", [&] { return slot.release(rank.q); }, 2},
      {"combine", [&] { return slot.combine(rank.q, step.results(), step.output()); }, 2},
      {"combine_receive", [&] { return slot.combine_receive(rank.q, step.output()); }, 3}};
  for (int round = 0; round < 2; ++round)
    for (int stage = 0; stage < 4; ++stage) {
      for (call const& c : calls)
        if (c.stage != stage) {
          SCOPED_TRACE(std::string(c.name) + " at stage " + std::to_string(stage));
          expect_refused(c.run(), error_code::invalid_state, {c.name, "slot 1"});
        }
      // The right call, twice refused for its queue before it is made.
      queue wide = queue::cpu(2).value();
      std::swap(wide, rank.q);
      for (call const& c : calls)
        if (c.stage == stage)
          expect_refused(c.run(), error_code::invalid_argument, {"2 teams", "1 blocks"});
      std::swap(wide, rank.q);
      if (stage == 2 && round == 1) {
        ASSERT_TRUE(slot.release(rank.q));
        break;
      }
      int const right[] = {0, 1, 2, 5};
      auto const done = calls[static_cast<std::size_t>(right[stage])].run();
      ASSERT_TRUE(done.has_value()) << done.error().message;
    }
  EXPECT_EQ(rank.ep->counters().steps, 2u);
  EXPECT_EQ(step.y[5], 1.0f);
}

TEST(exchange, refuses_more_blocks_than_it_was_made_for) {
  exchange_options o = small();
  o.blocks = 3;
  lone_rank rank(o);
  small_step step;
  microbatch& slot = rank.slot();
  using call = std::function<result<void>(call_options const&)>;
  std::vector<std::pair<char const*, call>> const calls = {
      {"dispatch_send", [&](auto with) { return slot.dispatch_send(rank.q, step.input(), with); }},
      {"dispatch_receive",
       [&](auto with) -> result<void> {
         auto r = slot.dispatch_receive(rank.q, with);
         return r ? result<void>{} : r.error();
       }},
      {"combine_send", [&](auto with) { return slot.combine_send(rank.q, step.results(), with); }},
      {"combine_receive",
       [&](auto with) { return slot.combine_receive(rank.q, step.output(), {}, with); }}};
  for (auto const& [name, run] : calls) {
    for (int blocks : {-1, 4})
      expect_refused(run({.blocks = blocks}), error_code::invalid_argument,
                     {name, "slot 0", std::to_string(blocks) + " blocks", "1 to 3"});
    if (std::string(name) == "combine_send") {
      expect_refused(slot.release(rank.q, {.blocks = 4}), error_code::invalid_argument,
                     {"release", "4 blocks", "1 to 3"});
      expect_refused(slot.combine(rank.q, step.results(), step.output(), {}, {.blocks = 4}),
                     error_code::invalid_argument, {"combine", "4 blocks", "1 to 3"});
    }
    ASSERT_TRUE(run({.blocks = 2})) << "a refused call may be repeated";
  }
  EXPECT_EQ(step.y[5], 1.0f);
}

TEST(exchange, refuses_expert_rows_and_outputs_that_do_not_fit) {
  lone_rank rank(small());
  small_step step;
  std::vector<bf16> narrow(64);
  ASSERT_TRUE(rank.slot().dispatch(rank.q, step.input()));
  auto const send = [&](const_tensor rows, std::vector<std::string> const& parts) {
    expect_refused(rank.slot().combine_send(rank.q, rows), error_code::invalid_argument, parts);
  };
  send(step.results(4), {"4 expert rows", "up to 5"});
  send(rows_of(narrow.data(), 5, 5), {"bf16", "f32"});
  send(rows_of(step.made.data(), 5, 4), {"4 columns", "for 5"});
  send(const_tensor{nullptr, 5, 5, dtype::f32}, {"5 rows", "no address"});
  send({step.results().data + 1, 5, 5, dtype::f32}, {"address", "4 bytes"});
  send({step.results().data, 5, 5, dtype::f32, 12}, {"12", "20"});
  // combine() looks at its output before it sends anything.
  expect_refused(rank.slot().combine(rank.q, step.results(), step.output(2)),
                 error_code::invalid_argument, {"2 output rows", "3 tokens"});
  ASSERT_TRUE(rank.slot().combine_send(rank.q, step.results()));
  auto const receive = [&](tensor out, const_tensor added, std::vector<std::string> const& parts) {
    expect_refused(rank.slot().combine_receive(rank.q, out, added), error_code::invalid_argument,
                   parts);
  };
  receive(step.output(2), {}, {"2 output rows", "3 tokens"});
  receive(rows_of(narrow.data(), 3, 5), {}, {"bf16", "f32"});
  receive({step.output().data, 3, 5, dtype::f32, 8}, {}, {"8", "20"});
  receive({step.output().data + 3, 3, 5, dtype::f32}, {}, {"address", "4 bytes"});
  receive(step.output(), rows_of(step.x.data(), 2, 5), {"2 added rows", "3 tokens"});
  receive(step.output(), rows_of(narrow.data(), 3, 5), {"added", "bf16"});
  receive(step.output(), rows_of(step.x.data(), 3, 4), {"added", "4 columns"});
  receive(step.output(), rows_of(static_cast<float*>(nullptr), 3, 5),
          {"added", "3 rows at no address"});
  ASSERT_TRUE(rank.slot().combine_receive(rank.q, step.output()));
  EXPECT_EQ(step.y[0], 2.0f);
}

TEST(exchange, refuses_sums_of_tokens_that_do_not_fit_it) {
  lone_rank rank(small());
  small_step step;
  ASSERT_TRUE(rank.slot().dispatch(rank.q, step.input()));
  expect_refused(rank.slot().combine_send(rank.q, token_sums{step.results(3)}),
                 error_code::invalid_argument, {"3 sums of tokens", "1 ranks of 4", "need 4"});
  token_sums other{step.results(4)};
  other.rows.type = dtype::bf16;
  expect_refused(rank.slot().combine_send(rank.q, other), error_code::invalid_argument,
                 {"sums of tokens", "bf16", "f32"});
  ASSERT_TRUE(rank.slot().combine_send(rank.q, token_sums{step.results(4)}));
  ASSERT_TRUE(rank.slot().combine_receive(rank.q, step.output()));
  EXPECT_EQ(step.y[0], 2.0f) << "neither weighted nor summed again";

  exchange_options o = small();
  o.reduction = reduction::per_choice;
  lone_rank each(o);
  ASSERT_TRUE(each.slot().dispatch(each.q, step.input()));
  expect_refused(each.slot().combine_send(each.q, token_sums{step.results(4)}),
                 error_code::invalid_argument, {"per_choice"});
}

TEST(exchange, checks_opaque_rows_and_scales_byte_by_byte) {
  exchange_options o = small();
  o.wire = wire::opaque;
  o.opaque_row_bytes = 7;
  o.opaque_scale_bytes = 3;
  lone_rank rank(o);
  small_step step;
  std::vector<std::byte> rows(64), scales(64);
  dispatch_input const good{.tokens = {rows.data(), 3, 7, dtype::byte},
                            .choices = dense(step.ids.data(), 3, 2),
                            .scales = {scales.data(), 3, 3, 3}};
  auto const refused = [&](auto spoil, std::vector<std::string> const& parts) {
    dispatch_input input = good;
    spoil(input);
    expect_refused(rank.slot().dispatch_send(rank.q, input), error_code::invalid_argument, parts);
  };
  refused([](dispatch_input& i) { i.tokens.columns = 8; }, {"8 columns", "for 7"});
  refused([](dispatch_input& i) { i.tokens.type = dtype::f32; }, {"f32", "byte"});
  refused([](dispatch_input& i) { i.scales = {}; }, {"scales", "[3, 3]"});
  refused([](dispatch_input& i) { i.scales.columns = 2; }, {"[3, 2]", "[3, 3]"});
  refused([](dispatch_input& i) { i.scales.rows = 2; }, {"[2, 3]", "[3, 3]"});
  refused([](dispatch_input& i) { i.scales.row_stride = 2; }, {"scales", "2", "3"});
  ASSERT_TRUE(rank.slot().dispatch(rank.q, good));
  ASSERT_TRUE(rank.slot().release(rank.q));
}

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
