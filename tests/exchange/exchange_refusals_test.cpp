// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Calls that an exchange refuses, after which it is as it was.
#include "exchange/lone_rank.hpp"

#include <limits>

namespace {

using namespace ferry;
using namespace ferry::oracle;
using testing::HasSubstr;

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

}  // namespace
