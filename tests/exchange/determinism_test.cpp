// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The same bits on every run and, with per_choice, on every number of ranks, transport, number of
// threads and code level.

#include "exchange/rank_run.hpp"

#include <ferry/exec/cpu/code_level.hpp>

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

constexpr int num_tokens = 37, hidden = 300, topk = 6, num_experts = 13;

struct setting {
  int ranks = 1;
  reach via = reach::mapped;
  int blocks = 1;
  layout lay = layout::grouped;
  int round_tokens = 0;
};

// Numbers of all sizes, not whole: any other order of additions gives other bits.
struct numbers {
  std::vector<float> rows, weights;
  std::vector<std::int32_t> ids;

  numbers() {
    dice from(42);
    auto const real = [&] {
      float const x = static_cast<float>(static_cast<std::int64_t>(from() % 2000001) - 1000000);
      return std::ldexp(x, -pick(from, 10, 30));
    };
    for (int i = 0; i < num_tokens * hidden; ++i) rows.push_back(real());
    for (int i = 0; i < num_tokens * topk; ++i) {
      weights.push_back(real());
      ids.push_back(one_in(from, 9) ? -1 : pick(from, 0, num_experts - 1));
    }
  }
};

exchange_options options(setting const& s, wire sent, wire home, reduction how) {
  exchange_options o{.num_experts = num_experts,
                     .topk = topk,
                     .hidden = hidden,
                     .max_tokens = num_tokens,
                     .tokens = dtype::f32,
                     .wire = sent,
                     .expert_rows = dtype::f32,
                     .combine_wire = home,
                     .output = dtype::f32};
  o.layout = s.lay;
  o.reduction = how;
  o.blocks = s.blocks;
  o.via = s.via;
  o.faults.try_again = 100;
  o.round_tokens = s.round_tokens;
  return o;
}

// Rank r brings tokens [r * num_tokens / R, (r + 1) * num_tokens / R) of the same list.
std::vector<float> outputs(setting const& s, exchange_options const& o) {
  static numbers const in;
  std::vector<float> out(static_cast<std::size_t>(num_tokens * hidden));
  complaints wrong;
  run_ranks(s.ranks, std::chrono::seconds(20), wrong, [&](group const& ranks) {
    exchange ep = make_exchange(ranks, o).value();
    queue q = queue::cpu(s.blocks).value();
    int const first = ranks.rank() * num_tokens / s.ranks;
    int const tokens = (ranks.rank() + 1) * num_tokens / s.ranks - first;
    received const got =
        ep.microbatch(1)
            .dispatch(q, {.tokens = rows_of(in.rows.data() + first * hidden, tokens, hidden),
                          .choices = dense(in.ids.data() + first * topk, tokens, topk),
                          .weights = dense(in.weights.data() + first * topk, tokens, topk)})
            .value();
    typed_rows made(*got.end, hidden, dtype::f32, 0);
    for (int e = 0; e < got.num_local_experts; ++e)
      for (int p = got.starts[e]; p < got.starts[e] + got.counts[e]; ++p) {
        std::int64_t const row = got.index ? got.index[p] : p;
        std::vector<float> const x = out_of_wire(
            got.rows[row], got.scales.data ? got.scales[row] : nullptr, o.wire, hidden, 0);
        for (int c = 0; c < hidden; ++c)
          made.set(p, c, expert(got.first_expert + e, x[static_cast<std::size_t>(c)]));
      }
    ep.microbatch(1)
        .combine(q, made.view(), rows_of(out.data() + first * hidden, tokens, hidden))
        .value();
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
  return out;
}

bool same_bits(std::vector<float> const& a, std::vector<float> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr wire homes[] = {wire::f32, wire::bf16, wire::fp16, wire::fp8_e4m3, wire::fp8_e4m3fnuz};
constexpr wire sents[] = {wire::f32,      wire::bf16,         wire::fp16,
                          wire::fp8_e4m3, wire::fp8_e4m3fnuz, wire::fp8_ue8m0};

TEST(exchange_determinism, per_choice_gives_the_same_bits_on_every_number_of_ranks) {
  for (int i = 0; i < 6; ++i) {
    auto const of = [&](setting const& s) {
      return outputs(s, options(s, sents[i], homes[i % 5], reduction::per_choice));
    };
    std::vector<float> const alone = of({});
    for (int ranks = 2; ranks <= 9; ++ranks) {
      setting s{.ranks = ranks};
      s.via = ranks % 3 == 0 ? reach::network : reach::mapped;
      s.blocks = 1 + ranks % 2;
      s.lay = ranks % 4 == 0 ? layout::in_place : ranks % 4 == 1 ? layout::padded : layout::grouped;
      if (ranks % 5 == 2) s.round_tokens = 2;
      EXPECT_TRUE(same_bits(alone, of(s))) << ranks << " ranks, " << to_string(sents[i]);
    }
  }
}

TEST(exchange_determinism, per_rank_gives_the_same_bits_on_every_run_and_transport) {
  for (int i = 0; i < 5; ++i) {
    exchange_options const o = options({.ranks = 4}, sents[i], homes[i], reduction::per_rank);
    std::vector<float> const first = outputs({.ranks = 4}, o);
    EXPECT_TRUE(same_bits(first, outputs({.ranks = 4}, o)));
    for (setting const& s :
         {setting{.ranks = 4, .via = reach::network}, setting{.ranks = 4, .blocks = 3},
          setting{.ranks = 4, .lay = layout::in_place}, setting{.ranks = 4, .round_tokens = 3}})
      EXPECT_TRUE(
          same_bits(first, outputs(s, options(s, sents[i], homes[i], reduction::per_rank))));
  }
}

// 2^30 + 1 - 2^30 is 0 in f32 if summed from the left, 1 if the large ones meet first.
float ordered_sum(int ranks, reduction how, std::vector<std::int32_t> const& ids,
                  std::vector<float> const& by_expert) {
  float sum = -1;
  complaints wrong;
  run_ranks(ranks, std::chrono::seconds(20), wrong, [&](group const& r) {
    exchange_options o{.num_experts = 3,
                       .topk = 3,
                       .hidden = 1,
                       .max_tokens = 1,
                       .tokens = dtype::f32,
                       .wire = wire::f32,
                       .expert_rows = dtype::f32,
                       .combine_wire = wire::f32,
                       .output = dtype::f32};
    o.reduction = how;
    exchange ep = make_exchange(r, o).value();
    queue q;
    float const x = 1;
    int const tokens = r.rank() == 0;
    received const got = ep.microbatch(0)
                             .dispatch(q, {.tokens = rows_of(&x, tokens, 1),
                                           .choices = dense(ids.data(), tokens, 3)})
                             .value();
    std::vector<float> made(4);
    for (int e = 0; e < got.num_local_experts; ++e)
      for (int p = got.starts[e]; p < got.starts[e] + got.counts[e]; ++p)
        made[static_cast<std::size_t>(p)] =
            by_expert[static_cast<std::size_t>(got.first_expert + e)];
    float y = 0;
    ep.microbatch(0).combine(q, rows_of(made.data(), 4, 1), rows_of(&y, tokens, 1)).value();
    if (tokens) sum = y;
  });
  EXPECT_TRUE(wrong.none()) << wrong.text();
  return sum;
}

TEST(exchange_determinism, sums_ranks_in_ascending_order_and_choices_in_their_order) {
  float const large = 0x1p30f;
  std::vector<float> const small_between{large, 1, -large}, small_last{large, -large, 1};
  for (int run = 0; run < 3; ++run) {
    // Three ranks, one expert each: whatever the order of choices, ranks ascend.
    for (std::vector<std::int32_t> const& ids :
         {std::vector<std::int32_t>{0, 1, 2}, {2, 1, 0}, {0, 2, 1}}) {
      EXPECT_EQ(ordered_sum(3, reduction::per_rank, ids, small_between), 0.0f);
      EXPECT_EQ(ordered_sum(3, reduction::per_rank, ids, small_last), 1.0f);
    }
    for (int ranks : {1, 2, 3}) {
      EXPECT_EQ(ordered_sum(ranks, reduction::per_choice, {0, 1, 2}, small_between), 0.0f);
      EXPECT_EQ(ordered_sum(ranks, reduction::per_choice, {0, 2, 1}, small_between), 1.0f);
      EXPECT_EQ(ordered_sum(ranks, reduction::per_choice, {2, 0, 1}, small_between), 1.0f);
    }
    // On one rank, its partial sum goes by choices.
    EXPECT_EQ(ordered_sum(1, reduction::per_rank, {0, 1, 2}, small_between), 0.0f);
    EXPECT_EQ(ordered_sum(1, reduction::per_rank, {0, 2, 1}, small_between), 1.0f);
    // Two ranks: expert 0 on rank 0; 1 and 2 summed on rank 1 first.
    EXPECT_EQ(ordered_sum(2, reduction::per_rank, {1, 0, 2}, small_between), 0.0f);
    EXPECT_EQ(ordered_sum(2, reduction::per_rank, {1, 0, 2}, {1, large, -large}), 1.0f);
  }
}

// One number for all bits of all formats. Every code level must come to it: CTest runs this test
// once for each, by FERRY_CPU_ISA.
TEST(exchange_determinism, has_the_same_digest_at_every_code_level) {
  if (result<code_level> const level = chosen_code_level(); !level)
    GTEST_SKIP() << level.error().message;
  std::uint64_t digest = 0xCBF29CE484222325u;
  for (wire sent : sents)
    for (wire home : homes)
      for (auto how : {reduction::per_rank, reduction::per_choice}) {
        setting const s{.ranks = 2};
        std::vector<float> const out = outputs(s, options(s, sent, home, how));
        for (float x : out) digest = (digest ^ bits_of(x)) * 0x100000001B3u;
      }
  EXPECT_EQ(digest, 0x1d322c7efe5e534fu) << std::hex << digest;
}

}  // namespace
