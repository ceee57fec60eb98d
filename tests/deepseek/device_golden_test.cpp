// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The goldens of gate, rope, fp8 and an MoE layer as the kernels of a device compute them: on
// emulated lanes, which take few tokens of each, or on the device that FERRY_TEST_DEVICE names.

#include "deepseek/device_linear.hpp"
#include "deepseek/golden_gate.hpp"
#include "deepseek/golden_moe.hpp"
#include "deepseek/golden_rope.hpp"
#include "deepseek/owned_matrix.hpp"
#include "exchange/one_row.hpp"
#include "exchange/test_device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace ferry::deepseek {
namespace {

/// A device with a queue, and copies both ways.
class device_golden : public ::testing::Test {
 protected:
  device where_ = oracle::test_device(0);
  strip_device on_ = strip_device::open(where_).value();
  queue q_ = queue::on(where_).value();

  template <class T>
  device_array<T> copy_of(std::vector<T> const& values) {
    return on_.copy_of(std::span<T const>(values)).value();
  }
  template <class T>
  device_array<T> array(std::int64_t size) {
    return on_.array<T>(size).value();
  }
  template <class T>
  std::vector<T> read(device_array<T> const& from) {
    std::vector<T> values(static_cast<std::size_t>(from.size()));
    q_.copy(values.data(), from.data(), values.size() * sizeof(T)).value();
    finish();
    return values;
  }
  void finish() { q_.wait(std::chrono::seconds(120)).value(); }
  /// As many tokens as lanes that are played get through in a test's time.
  static std::int64_t tokens_of(std::int64_t all, std::int64_t few) {
    return oracle::on_gpu() ? all : few;
  }

  /// y = x W^T of `groups` groups.
  void multiply(device_linear const& weights, product_rows const& with) {
    auto const size = weights.staging(with.rows, with.x_group);
    auto const values = array<float>(size);
    auto const codes = array<bf16>(size);
    weights.apply(on_, q_, with, {values.data(), codes.data(), size}).value();
    finish();
  }
  device_linear linear_of(std::vector<float> const& weights, int groups, std::int64_t in,
                          bool quantises = false) {
    return device_linear::make(on_, weights, groups, in,
                               {.compute = dtype::f32, .quantise_input = quantises})
        .value();
  }

  struct choice {
    device_array<std::int32_t> ids;
    device_array<float> weights;
  };
  /// A gate's choice for n tokens that lie on the device.
  choice choose(gate_rule const& rule, std::vector<float> const& router,
                std::vector<float> const& bias, float const* x, std::int64_t n,
                std::int64_t hidden) {
    auto const logits = array<float>(n * rule.num_experts);
    multiply(
        linear_of(router, 1, hidden),
        {.x = x, .x_stride = hidden, .y = logits.data(), .y_stride = rule.num_experts, .rows = n});
    choice made{array<std::int32_t>(n * rule.topk), array<float>(n * rule.topk)};
    auto const biases = copy_of(bias);
    std::int64_t const stride = choose_experts::scratch_of(rule.num_experts, rule.num_groups);
    auto const scratch = array<float>(on_.strips() * stride);
    on_.run(q_, choose_experts{.logits = dense<float const>(logits.data(), n, rule.num_experts),
                               .bias = biases.data(),
                               .choices = dense(made.ids.data(), n, std::int64_t{rule.topk}),
                               .weights = dense(made.weights.data(), n, std::int64_t{rule.topk}),
                               .num_groups = rule.num_groups,
                               .kept_groups = rule.kept_groups,
                               .softmax_scores = rule.scoring == scoring::softmax,
                               .group_is_two_best = rule.group_is_two_best,
                               .normalise = rule.normalise,
                               .scale = rule.scale,
                               .scratch = scratch.data(),
                               .scratch_stride = stride})
        .value();
    finish();
    return made;
  }
  /// down(silu(gate x) * up x) for rows in groups, whose places are on the device or all in one.
  void feed(device_linear const& gate_and_up, device_linear const& down, product_rows rows) {
    std::int64_t const width = down.in();
    auto const inner = array<float>(rows.rows * 2 * width), gated = array<float>(rows.rows * width);
    float* const y = rows.y;
    std::int64_t const y_stride = rows.y_stride;
    rows.y = inner.data();
    rows.y_stride = 2 * width;
    multiply(gate_and_up, rows);
    on_.run(q_, gate_rows{dense<float const>(inner.data(), rows.rows, 2 * width),
                          dense(gated.data(), rows.rows, width), rows.end})
        .value();
    rows.x = gated.data();
    rows.x_stride = width;
    rows.y = y;
    rows.y_stride = y_stride;
    multiply(down, rows);
  }
};

TEST_F(device_golden, gates_choose_and_weigh_as_the_golden) {
  for (char const* name : {"v3_sigmoid_public", "v2_softmax_public"}) {
    test::golden_gate const golden(name);
    std::int64_t const n = tokens_of(golden.tokens, 12);
    auto const x = copy_of(golden.x);
    choice const made = choose(golden.rule, golden.router, golden.bias, x.data(), n, golden.hidden);
    golden.expect_choices(n, read(made.ids).data(), read(made.weights).data());
  }
}

TEST_F(device_golden, heads_turn_by_the_golden_angles) {
  for (char const* name : {"tiny_A", "deepseek_v3"}) {
    test::golden_rope const golden(name);
    auto const positions = golden.file.tensor<std::int32_t>("positions");
    auto const cosines = golden.file.tensor<double>("f64.cos");
    auto const sines = golden.file.tensor<double>("f64.sin");
    rope const table = rope::make(golden.options, golden.positions).value();
    int const dimensions = golden.options.dimensions;
    auto const n = std::ssize(positions.values);
    // A table of the golden positions alone; a head of (1, 0) pairs and one of (0, 1) pairs.
    std::vector<float> angles, heads;
    std::vector<std::int32_t> rows;
    for (std::int64_t i = 0; i < n; ++i) {
      float const* const row = table.at(positions.values[static_cast<std::size_t>(i)]);
      angles.insert(angles.end(), row, row + dimensions);
      rows.push_back(static_cast<std::int32_t>(i));
      for (int c = 0; c < 2 * dimensions; ++c)
        heads.push_back(static_cast<float>(c < dimensions ? c % 2 == 0 : c % 2 == 1));
    }
    auto const from = copy_of(heads), turning = copy_of(angles);
    auto const at = copy_of(rows);
    auto const to = array<float>(n * 2 * dimensions);
    on_.run(q_, rotate_heads{.from = from.data(),
                             .from_token = 2 * dimensions,
                             .from_head = dimensions,
                             .to = to.data(),
                             .to_token = 2 * dimensions,
                             .to_head = dimensions,
                             .positions = at.data(),
                             .angles = turning.data(),
                             .dimensions = dimensions,
                             .tokens = n,
                             .heads = 2})
        .value();
    auto const found = read(to);
    for (std::size_t i = 0; i < cosines.size(); ++i) {
      auto const pairs = static_cast<std::size_t>(dimensions / 2);
      std::size_t const first = i / pairs * 4 * pairs + 2 * (i % pairs);
      EXPECT_NEAR(found[first], cosines[i], 1e-7) << name;
      EXPECT_NEAR(found[first + 1], sines[i], 1e-7) << name;
      EXPECT_NEAR(found[first + 2 * pairs], -sines[i], 1e-7) << name;
      EXPECT_NEAR(found[first + 2 * pairs + 1], cosines[i], 1e-7) << name;
    }
  }
}

TEST_F(device_golden, rows_are_quantised_narrowed_and_read_as_the_golden) {
  testing::golden_file const golden("fp8/act_quant_1x128.safetensors");
  auto const x = golden.tensor<float>("x");
  std::int64_t const rows = x.shape[0], columns = x.shape[1];
  auto const from = copy_of(x.values);
  auto const to = array<float>(rows * columns);
  on_.run(q_, quantise_rows{dense<float const>(from.data(), rows, columns),
                            dense(to.data(), rows, columns)})
      .value();
  EXPECT_EQ(read(to), golden.tensor<float>("e4m3fn.dequant").values);

  struct {
    char const* name;
    wire format;
  } const formats[] = {{"e4m3fn", wire::fp8_e4m3}, {"e4m3fnuz", wire::fp8_e4m3fnuz}};
  for (auto const& [name, format] : formats) {
    auto const codes = copy_of(golden.tensor<std::uint8_t>(std::string(name) + ".q").values);
    auto const scales = copy_of(golden.tensor<float>(std::string(name) + ".scale").values);
    on_.run(q_, decode_rows{.format = format,
                            .rows = reinterpret_cast<std::byte const*>(codes.data()),
                            .row_stride = columns,
                            .scales = reinterpret_cast<std::byte const*>(scales.data()),
                            .scale_stride = columns / 128 * std::int64_t{sizeof(float)},
                            .to = dense(to.data(), rows, columns)})
        .value();
    EXPECT_EQ(read(to), golden.tensor<float>(std::string(name) + ".dequant").values) << name;
  }

  testing::golden_file const rounding("fp8/bf16_round.safetensors");
  auto const wide = rounding.tensor<float>("x");
  auto const narrow = rounding.tensor<bf16>("bf16");
  auto const all = copy_of(wide.values);
  auto const made = array<bf16>(std::ssize(wide.values));
  on_.run(q_, narrow_rows{dense<float const>(all.data(), 1, std::ssize(wide.values)),
                          dense(made.data(), 1, std::ssize(wide.values))})
      .value();
  auto const found = read(made);
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i].bits, narrow[i].bits) << wide[i];
}

// The exchange's own quantisation, in its send pass: 32 rows of whole blocks are one long row.
TEST_F(device_golden, rows_on_the_wire_have_the_golden_codes_and_scales) {
  testing::golden_file const golden("fp8/act_quant_1x128.safetensors");
  auto const x = golden.tensor<float>("x").values;
  struct {
    char const* name;
    wire format;
  } const formats[] = {{"e4m3fn", wire::fp8_e4m3},
                       {"e4m3fnuz", wire::fp8_e4m3fnuz},
                       {"e4m3fn_ue8m0", wire::fp8_ue8m0}};
  for (auto const& [name, format] : formats) {
    auto const codes = golden.tensor<std::uint8_t>(std::string(name) + ".q").values;
    auto const scales = golden.tensor<float>(std::string(name) + ".scale").values;
    oracle::one_row const sent = oracle::step_of(
        where_, {.tokens = dtype::f32, .wire = format, .combine_wire = wire::f32}, x);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      // Where one quantisation serves both flavours, zero has one code.
      std::uint8_t const code =
          format == wire::fp8_ue8m0 && codes[i] == 0x80 ? std::uint8_t{0} : codes[i];
      ASSERT_EQ(sent.codes[i], code) << name << ", number " << i << ": " << x[i];
    }
    for (std::size_t i = 0; i < scales.size(); ++i) {
      float scale = 0;
      if (format == wire::fp8_ue8m0)
        scale = to_float(e8m0{std::to_integer<std::uint8_t>(sent.scales[i])});
      else
        std::memcpy(&scale, &sent.scales[4 * i], sizeof scale);
      ASSERT_EQ(scale, scales[i]) << name << ", block " << i;
    }
  }
}

TEST_F(device_golden, products_of_quantised_rows_are_near_the_golden) {
  testing::golden_file const golden("fp8/block_gemm.safetensors");
  auto const x = golden.tensor<float>("x");
  auto const codes = golden.tensor<e4m3>("e4m3fn.wq");
  auto const scales = golden.tensor<float>("e4m3fn.ws");
  auto const expected = golden.tensor<double>("e4m3fn.y_f64");
  std::int64_t const in = x.shape[1], out = codes.shape[0];
  std::vector<float> weights;
  for (std::int64_t i = 0; i < out * in; ++i) {
    auto const scale = static_cast<std::size_t>(i / in / 128 * (in / 128) + i % in / 128);
    weights.push_back(to_float(codes[static_cast<std::size_t>(i)]) * scales[scale]);
  }
  std::int64_t const n = tokens_of(x.shape[0], 3);
  auto const from = copy_of(x.values);
  auto const y = array<float>(n * out);
  multiply(linear_of(weights, 1, in, true),
           {.x = from.data(), .x_stride = in, .y = y.data(), .y_stride = out, .rows = n});
  auto const found = read(y);
  double largest = 0;
  for (std::int64_t i = 0; i < n * out; ++i)
    largest = std::max(largest, std::abs(expected[static_cast<std::size_t>(i)]));
  EXPECT_LT(test::distance(found.data(), expected.values.data(), n * out), 2e-6 * largest);
}

TEST_F(device_golden, a_layer_of_experts_gives_the_golden_outputs) {
  test::golden_moe const golden;
  std::int64_t const n = tokens_of(golden.tokens, 1), hidden = golden.hidden;
  exchange_options o{.num_experts = golden.num_experts,
                     .topk = golden.rule.topk,
                     .hidden = golden.hidden,
                     .max_tokens = static_cast<int>(n)};
  o.tokens = o.expert_rows = o.output = dtype::f32;
  o.wire = o.combine_wire = wire::f32;
  thread_ranks const meeting = threads(1);
  group const alone = join(meeting.rank(0)).value();
  exchange ep = make_exchange(alone, where_, o).value();
  auto const x = copy_of(golden.x);
  choice const made = choose(golden.rule, golden.router, golden.bias, x.data(), n, hidden);

  std::vector<float> gate_and_up, down;
  for (int e = 0; e < golden.num_experts; ++e) {
    auto const i = static_cast<std::size_t>(e);
    gate_and_up.insert(gate_and_up.end(), golden.gate_and_up[i].begin(),
                       golden.gate_and_up[i].end());
    down.insert(down.end(), golden.down[i].begin(), golden.down[i].end());
  }
  auto const shared = array<float>(n * hidden);
  feed(linear_of(golden.gate_and_up.back(), 1, hidden),
       linear_of(golden.down.back(), 1, golden.width),
       {.x = x.data(), .x_stride = hidden, .y = shared.data(), .y_stride = hidden, .rows = n});

  microbatch& slot = ep.microbatch(0);
  auto const topk = std::int64_t{golden.rule.topk};
  float const* const tokens = x.data();
  received const in =
      slot.dispatch(q_, {.tokens = rows_of<float>(tokens, n, hidden),
                         .choices = dense<std::int32_t const>(made.ids.data(), n, topk),
                         .weights = dense<float const>(made.weights.data(), n, topk)})
          .value();
  slot.wait(q_).value();
  auto const rows = array<float>(in.capacity * hidden);
  feed(linear_of(gate_and_up, golden.num_experts, hidden),
       linear_of(down, golden.num_experts, golden.width),
       {.x = reinterpret_cast<float const*>(in.rows.data),
        .x_stride = in.rows.stride_bytes() / std::int64_t{sizeof(float)},
        .y = rows.data(),
        .y_stride = hidden,
        .rows = in.capacity,
        .starts = in.starts,
        .counts = in.counts,
        .end = in.end});
  tensor const out = rows_of(shared.data(), n, hidden);
  float const* const results = rows.data();
  slot.combine(q_, rows_of<float>(results, in.capacity, hidden), out, out).value();
  slot.wait(q_).value();
  auto const found = read(shared);
  auto const expected = golden.file.tensor<float>("out");
  EXPECT_LT(test::distance(found.data(), expected.values.data(), n * hidden), 3e-5);
}

}  // namespace
}  // namespace ferry::deepseek
