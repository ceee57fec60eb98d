// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/moe_layer.hpp>

#include <ferry/base/number_formats.hpp>
#include <ferry/deepseek/reference/moe.hpp>

#include "deepseek/golden_moe.hpp"
#include "deepseek/on_ranks.hpp"
#include "deepseek/owned_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::deepseek {
namespace {

using test::golden_moe;
using test::owned_matrix;

/// A small layer: odd sizes, experts that no number of ranks divides.
struct small_moe {
  static constexpr int hidden = 132;
  static constexpr int width = 24;
  static constexpr int num_experts = 7;

  small_moe()
      : router(owned_matrix("router", num_experts, hidden, 0.3F).values),
        bias(owned_matrix("bias", 1, num_experts, 0.2F).values) {
    rule.num_experts = num_experts;
    rule.topk = 3;
    rule.scale = 1.5F;
    for (int e = 0; e <= num_experts; ++e) {
      both.emplace_back("both" + std::to_string(e), 2 * width, hidden, 0.2F);
      down.emplace_back("down" + std::to_string(e), hidden, width, 0.2F);
    }
  }
  mlp expert(int e) const {
    auto const i = static_cast<std::size_t>(e);
    return mlp::make(both[i].view(), down[i].view()).value();
  }
  gate make_gate() const {
    return gate::make(rule, dense<float const>(router.data(), num_experts, hidden), bias).value();
  }
  reference::mlp_weights weights(int e) const {
    auto const i = static_cast<std::size_t>(e);
    return {both[i].slice(0, width), both[i].slice(width, width), down[i].view()};
  }
  reference::moe_weights plain() const {
    reference::moe_weights w;
    w.rule = rule;
    w.router = dense<float const>(router.data(), num_experts, hidden);
    w.bias.assign(bias.begin(), bias.end());
    w.shared = {weights(num_experts)};
    for (int e = 0; e < num_experts; ++e) w.experts.push_back(weights(e));
    return w;
  }
  gate_rule rule;
  std::vector<float> router;
  std::vector<float> bias;
  std::vector<owned_matrix> both, down;
};

/// Which rows of x a rank brings: about equal parts, or all of them from the last rank.
enum class split { even, all_from_last };

struct setting {
  int ranks = 1;
  split tokens = split::even;
  exchange_options exchange = {};
};

std::pair<std::int64_t, std::int64_t> part_of(setting const& s, int rank, std::int64_t n) {
  if (s.tokens == split::all_from_last) return {rank == s.ranks - 1 ? 0 : n, n};
  return {rank * n / s.ranks, (rank + 1) * n / s.ranks};
}

/// hidden + layer(x), two steps of each slot with the same input, the last one's result.
template <class Weights>
owned_matrix run_layer(Weights const& w, setting const& s, owned_matrix const& x,
                       owned_matrix const& hidden) {
  owned_matrix out = hidden;
  test::on_ranks(s.ranks, [&](group const& ranks) {
    exchange_options o = s.exchange;
    o.num_experts = w.num_experts;
    o.topk = w.rule.topk;
    o.hidden = w.hidden;
    o.max_tokens = static_cast<int>(x.rows);
    o.tokens = o.expert_rows = o.output = dtype::f32;
    exchange ep = make_exchange(ranks, o).value();
    std::vector<mlp> own;
    for (int e = ep.first_expert(ranks.rank()); e < ep.first_expert(ranks.rank() + 1); ++e) {
      own.push_back(w.expert(e));
    }
    moe_layer const layer =
        moe_layer::make(w.make_gate(), experts::make(std::move(own), w.hidden, o.wire).value(),
                        w.expert(w.num_experts))
            .value();
    moe_workspace work(w.rule, w.hidden, o.max_tokens, layer.scratch_size());
    auto const [first, end] = part_of(s, ranks.rank(), x.rows);
    queue q;
    for (int step = 0; step < 4; ++step) {
      owned_matrix own_hidden(end - first, w.hidden);
      std::copy_n(hidden[first], own_hidden.values.size(), own_hidden.values.data());
      layer
          .apply(q, ep.microbatch(step % ep.num_microbatches()), x.slice(first, end - first),
                 own_hidden.view(), work)
          .value();
      std::copy(own_hidden.values.begin(), own_hidden.values.end(), out.view()[first]);
    }
    ranks.barrier().value();
  });
  return out;
}

exchange_options formats(wire out, wire back, layout l = layout::grouped,
                         reduction r = reduction::per_rank) {
  exchange_options o;
  o.wire = out;
  o.combine_wire = back;
  o.layout = l;
  o.reduction = r;
  return o;
}

class moe_layer_on : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(ranks, moe_layer_on, ::testing::Values(1, 2, 3, 4));

TEST_P(moe_layer_on, gives_the_golden_outputs) {
  static golden_moe const golden;
  owned_matrix x(golden.tokens, golden.hidden);
  x.values = golden.x;
  owned_matrix const zeros(golden.tokens, golden.hidden);
  setting s{GetParam()};
  s.exchange = formats(wire::f32, wire::f32);
  owned_matrix const out = run_layer(golden, s, x, zeros);
  auto const expected = golden.file.tensor<float>("out");
  EXPECT_LT(test::distance(out[0], expected.values.data(), golden.tokens * golden.hidden), 3e-5);
}

TEST_P(moe_layer_on, adds_to_what_is_there_in_every_layout_and_reduction) {
  small_moe const w;
  owned_matrix const x("x", 21, w.hidden);
  owned_matrix const hidden("hidden", 21, w.hidden, 3);
  reference::moe_weights const plain = w.plain();
  for (layout l : {layout::grouped, layout::padded, layout::in_place}) {
    for (reduction r : {reduction::per_rank, reduction::per_choice}) {
      for (split tokens : {split::even, split::all_from_last}) {
        owned_matrix const out =
            run_layer(w, {GetParam(), tokens, formats(wire::f32, wire::f32, l, r)}, x, hidden);
        for (std::int64_t t = 0; t < x.rows; ++t) {
          auto expected = reference::moe(plain, {x[t], x[t] + w.hidden});
          for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += hidden[t][i];
          ASSERT_LT(test::distance(out[t], expected.data(), w.hidden), 2e-5) << t;
        }
      }
    }
  }
}

TEST_P(moe_layer_on, stays_near_the_reference_over_every_wire) {
  small_moe const w;
  owned_matrix const x("x", 12, w.hidden);
  owned_matrix const zeros(12, w.hidden);
  reference::moe_weights const plain = w.plain();
  struct {
    wire out, back;
    double limit;
  } const wires[] = {{wire::bf16, wire::f32, 0.02},        {wire::fp16, wire::f32, 0.003},
                     {wire::fp8_e4m3, wire::f32, 0.15},    {wire::fp8_e4m3fnuz, wire::f32, 0.15},
                     {wire::fp8_ue8m0, wire::f32, 0.15},   {wire::f32, wire::bf16, 0.02},
                     {wire::f32, wire::fp16, 0.003},       {wire::f32, wire::fp8_e4m3, 0.15},
                     {wire::f32, wire::fp8_e4m3fnuz, 0.15}};
  for (auto const& each : wires) {
    // The choice is made before a row takes the wire's form, so it is the reference's.
    owned_matrix const out =
        run_layer(w, {GetParam(), split::even, formats(each.out, each.back)}, x, zeros);
    for (std::int64_t t = 0; t < x.rows; ++t) {
      auto const expected = reference::moe(plain, {x[t], x[t] + w.hidden});
      EXPECT_LT(test::distance(out[t], expected.data(), w.hidden), each.limit)
          << to_string(each.out) << " " << to_string(each.back);
    }
  }
}

TEST(moe_layer, gives_the_same_bits_on_any_number_of_ranks_when_summed_per_choice) {
  small_moe const w;
  owned_matrix const x("x", 19, w.hidden);
  owned_matrix const hidden("hidden", 19, w.hidden);
  for (wire out : {wire::f32, wire::fp8_e4m3}) {
    for (wire back : {wire::f32, wire::bf16}) {
      exchange_options const o = formats(out, back, layout::grouped, reduction::per_choice);
      owned_matrix const alone = run_layer(w, {1, split::even, o}, x, hidden);
      for (int ranks : {2, 3, 5, 9}) {  // with 9, some hold no expert
        owned_matrix const together = run_layer(w, {ranks, split::even, o}, x, hidden);
        EXPECT_TRUE(test::same_bits(together[0], alone[0], 19 * w.hidden)) << ranks;
      }
    }
  }
}

TEST(moe_layer, says_where_its_time_went) {
  small_moe const w;
  test::on_ranks(1, [&](group const& ranks) {
    exchange_options o;
    o.num_experts = w.num_experts;
    o.topk = w.rule.topk;
    o.hidden = w.hidden;
    o.max_tokens = 4;
    o.tokens = o.expert_rows = o.output = dtype::f32;
    exchange ep = make_exchange(ranks, o).value();
    std::vector<mlp> all;
    for (int e = 0; e < w.num_experts; ++e) all.push_back(w.expert(e));
    moe_layer const layer =
        moe_layer::make(w.make_gate(), experts::make(all, w.hidden, o.wire).value(), std::nullopt)
            .value();
    moe_workspace work(w.rule, w.hidden, 4, layer.scratch_size());
    owned_matrix const x("x", 4, w.hidden);
    owned_matrix hidden(4, w.hidden);
    queue q;
    moe_times times;
    layer.apply(q, ep.microbatch(0), x.view(), hidden.view(), work, &times).value();
    for (double t : {times.gate, times.dispatch, times.experts, times.combine}) EXPECT_GT(t, 0);
    EXPECT_EQ(times.shared, 0);
  });
}

TEST(moe_layer, refuses_shared_experts_of_another_size) {
  small_moe const w;
  owned_matrix const both("both", 8, 10);
  owned_matrix const down("down", 10, 4);
  auto const refused =
      moe_layer::make(w.make_gate(), experts::make({}, w.hidden, wire::f32).value(),
                      mlp::make(both.view(), down.view()).value());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::invalid_argument);
}

}  // namespace
}  // namespace ferry::deepseek
