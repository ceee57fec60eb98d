// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Models on emulated devices: the same kernels as on GPUs, lane by lane, and the same exchange.

#include "deepseek/device_model.hpp"

#include "deepseek/golden_prompt.hpp"
#include "deepseek/on_ranks.hpp"
#include "deepseek/owned_matrix.hpp"
#include "exchange/test_device.hpp"

#include <ferry/exec/graph.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ferry::deepseek {
namespace {

using calls = std::vector<std::vector<std::int32_t>>;

/// That device, or, in a run on the device of FERRY_TEST_DEVICE, that one instead of emulated ones.
device open(std::string const& name) {
  bool const chosen = name != "cpu" && !oracle::chosen_device().empty();
  return chosen ? oracle::test_device(0) : device::open(name).value();
}

result<model> load(std::string const& name, group const& ranks, model_options options) {
  options.max_positions = 96;
  options.max_sequences = 3;
  options.max_tokens = 24;
  std::string const directory = test::model_directory(name);
  return model::load(checkpoint::open(directory).value(), load_model_config(directory).value(),
                     ranks, options);
}

/// Logits of rank 0's sequence; the other ranks have sequences of their own.
std::vector<float> logits_of(std::string const& name, std::string const& device_name, int ranks,
                             model_options options, calls const& batches) {
  std::vector<float> logits;
  test::on_ranks(ranks, [&](group const& g) {
    options.where = open(device_name);
    model m = load(name, g, options).value();
    queue q = queue::on(options.where).value();
    test::sequence own{g.rank() % 3};
    for (std::size_t i = 0; i < batches.size(); ++i) {
      if (g.rank() == 0) {
        own.feed(m, q, batches[i]);
      } else if (i % 2 == 0) {
        own.feed(m, q, {7, static_cast<std::int32_t>(i)});
      } else {
        test::attend_idly(m, q);
      }
    }
    if (g.rank() == 0) logits = own.logits;
    g.barrier().value();
  });
  return logits;
}

calls prompt_and_steps(testing::golden_file const& golden, std::size_t steps) {
  calls all{golden.tensor<std::int32_t>("tokens").values};
  auto const decoded = golden.tensor<std::int32_t>("decode_tokens").values;
  for (std::size_t i = 0; i < steps && i + 1 < decoded.size(); ++i) all.push_back({decoded[i]});
  return all;
}

/// The prompt's logits and those of the steps that follow.
void expect_golden(std::string const& name, std::string const& device_name, int ranks,
                   std::size_t steps, model_options const& options = {}) {
  testing::golden_file const golden(name + "/prompt_17.safetensors");
  auto const prompt = golden.tensor<double>("f64.logits");
  auto const decode = golden.tensor<double>("f64.decode_logits");
  auto const vocab = static_cast<std::ptrdiff_t>(prompt.shape[1]);
  auto expected = prompt.values;
  expected.insert(expected.end(), decode.values.begin() + vocab, decode.values.end());
  auto const found = logits_of(name, device_name, ranks, options, prompt_and_steps(golden, steps));
  ASSERT_EQ(found.size(), (17 + steps) * static_cast<std::size_t>(vocab));
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    double const apart = std::fabs(double{found[i]} - expected[i]);
    largest = std::isnan(apart) ? HUGE_VAL : std::max(largest, apart);
  }
  EXPECT_LT(largest, 1e-3) << name << " on " << device_name;
  auto const ids = golden.tensor<std::int32_t>("decode_tokens").values;
  for (std::size_t i = 0; i <= steps; ++i) {
    float const* const row = found.data() + (16 + static_cast<std::ptrdiff_t>(i)) * vocab;
    EXPECT_EQ(std::max_element(row, row + vocab) - row, ids[i]) << "step " << i;
  }
}

TEST(device_model, gives_the_golden_logits_on_emulated_devices) {
  expect_golden("tiny-A", "emulated:32", 1, 3);
  expect_golden("tiny-A", "emulated:64", 1, 3);
}

TEST(device_model, gives_the_golden_logits_with_experts_on_several_ranks) {
  expect_golden("tiny-A", "emulated:64", 3, 2);
  expect_golden("tiny-B", "emulated:32", 2, 1);
}

TEST(device_model, gives_the_golden_logits_of_fp8_weights) {
  expect_golden("tiny-C", "emulated:64", 1, 1);
}

TEST(device_model, gives_the_same_bits_on_lanes_of_either_width) {
  calls const batches = {{3, 1, 4, 1, 5}, {9}, {2}};
  auto const narrow = logits_of("tiny-A", "emulated:32", 2, {}, batches);
  auto const wide = logits_of("tiny-A", "emulated:64", 2, {}, batches);
  ASSERT_EQ(narrow.size(), wide.size());
  EXPECT_TRUE(test::same_bits(narrow.data(), wide.data(), std::ssize(wide)));
}

TEST(device_model, computes_in_bf16_and_quantises_as_the_cpu_does) {
  model_options options;
  options.compute = dtype::bf16;
  options.wire = wire::fp8_e4m3;
  options.combine_wire = wire::bf16;
  options.quantise_activations = true;
  for (auto layout : {layout::padded, layout::in_place}) {
    options.layout = layout;
    calls const batches = {{3, 1, 4, 1, 5}, {9}};
    auto const there = logits_of("tiny-C", "emulated:32", 2, options, batches);
    auto const here = logits_of("tiny-C", "cpu", 2, options, batches);
    double apart = 0;
    double size = 0;
    for (std::size_t i = 0; i < here.size(); ++i) {
      apart += std::pow(double{here[i]} - double{there[i]}, 2);
      size += std::pow(double{here[i]}, 2);
    }
    // Sums in another order now and then fall on the other side of a rounding to bf16 or fp8.
    EXPECT_LT(std::sqrt(apart / size), 0.03);
  }
}

// The played library adds up in an order of its own, as a vendor's does.
TEST(device_model, gives_the_golden_logits_with_products_of_a_library) {
  model_options options;
  options.products = product_kernels::vendor;
  expect_golden("tiny-A", "emulated:32", 1, 1, options);
}

TEST(device_model, gives_a_row_the_same_bits_in_every_batch_with_a_library) {
  model_options options;
  options.products = product_kernels::vendor;
  for (auto compute : {dtype::f32, dtype::bf16}) {
    options.compute = compute;
    auto const at_once = logits_of("tiny-A", "emulated:32", 1, options, {{3, 1, 4, 1, 5, 9}});
    auto const one_by_one =
        logits_of("tiny-A", "emulated:32", 1, options, {{3, 1, 4}, {1}, {5, 9}});
    ASSERT_EQ(at_once.size(), one_by_one.size());
    EXPECT_TRUE(test::same_bits(at_once.data(), one_by_one.data(), std::ssize(at_once)));
  }
  options.compute = dtype::f32;
  auto const own = logits_of("tiny-A", "emulated:32", 1, {}, {{3, 1, 4}});
  auto const library = logits_of("tiny-A", "emulated:32", 1, options, {{3, 1, 4}});
  if (!oracle::on_gpu()) {
    EXPECT_FALSE(test::same_bits(own.data(), library.data(), std::ssize(own)))
        << "no product was the library's";
  }
}

TEST(device_model, names_who_computes_products) {
  test::on_ranks(1, [&](group const& g) {
    model_options options;
    EXPECT_STREQ(load("tiny-A", g, options).value().products(), "oneDNN");
    options.products = product_kernels::vendor;
    auto const on_cpu = load("tiny-A", g, options);
    ASSERT_FALSE(on_cpu);
    EXPECT_EQ(on_cpu.error().code, error_code::unsupported);
    options.where = device::open("emulated:32").value();
    EXPECT_STREQ(load("tiny-A", g, options).value().products(), "played");
    for (auto own : {product_kernels::automatic, product_kernels::portable}) {
      options.products = own;
      EXPECT_STREQ(load("tiny-A", g, options).value().products(), "ferry");
    }
  });
}

TEST(device_model, leaves_logits_on_its_device) {
  for (char const* name : {"cpu", "emulated:64"})
    test::on_ranks(1, [&](group const& g) {
      model_options options;
      options.where = open(name);
      model m = load("tiny-A", g, options).value();
      queue q = queue::on(options.where).value();
      std::vector<std::int32_t> const ids = {3, 1}, slot = {0, 0}, positions = {0, 1};
      std::int64_t const vocab = m.config().vocab_size;
      auto const size = static_cast<std::size_t>(2 * vocab);
      std::vector<float> host(size), there(size);
      m.forward(q, {ids, slot, positions}, dense(host.data(), 2, vocab)).value();
      matrix<float const> const left = m.forward(q, {ids, slot, positions}).value();
      ASSERT_EQ(left.rows, 2);
      ASSERT_EQ(left.columns, vocab);
      q.copy(there.data(), left.data, size * sizeof(float)).value();
      q.wait(std::chrono::seconds(10)).value();
      EXPECT_TRUE(test::same_bits(host.data(), there.data(), 2 * vocab)) << name;
    });
}

TEST(device_model, refuses_a_queue_of_another_device) {
  test::on_ranks(1, [&](group const& g) {
    model_options options;
    options.where = device::open("emulated:32").value();
    model m = load("tiny-A", g, options).value();
    queue cpu;
    std::vector<std::int32_t> const one = {0};
    auto const r = m.forward(cpu, {one, one, one}, {});
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error().code, error_code::invalid_argument);
    EXPECT_THAT(r.error().message, ::testing::HasSubstr("a queue of cpu"));
  });
}

TEST(device_model, has_no_stages) {
  test::on_ranks(1, [&](group const& g) {
    model_options options;
    options.where = device::open("emulated:32").value();
    options.microbatches = 2;
    auto const split = load("tiny-A", g, options);
    ASSERT_FALSE(split);
    EXPECT_EQ(split.error().code, error_code::unsupported);
    EXPECT_THAT(split.error().message, ::testing::HasSubstr("2 microbatches on emulated:32"));

    options.microbatches = 1;
    model m = load("tiny-A", g, options).value();
    EXPECT_TRUE(m.stages().empty());
    std::vector<std::int32_t> const one = {0};
    token_batch const batch{one, one, one};
    auto const brought = m.bring({&batch, 1});
    ASSERT_FALSE(brought);
    EXPECT_EQ(brought.error().code, error_code::unsupported);
    EXPECT_EQ(m.length(0), 0);

    queue q = queue::on(options.where).value();
    auto const captured = capture(q, [&] { return m.forward(q, batch, {}); });
    ASSERT_FALSE(captured);
    EXPECT_EQ(captured.error().code, error_code::invalid_state);
    EXPECT_EQ(m.length(0), 0);
    // Nothing of this is in the way of a step.
    m.forward(q, batch, {}).value();
    EXPECT_EQ(m.length(0), 1);
  });
}

TEST(device_model, shows_what_each_layer_makes) {
  test::on_ranks(1, [&](group const& g) {
    model_options options;
    options.where = device::open("emulated:64").value();
    model m = load("tiny-A", g, options).value();
    test::recorder seen;
    m.observe(&seen);
    queue q = queue::on(options.where).value();
    test::sequence s{1};
    testing::golden_file const golden("tiny-A/prompt_5.safetensors");
    s.feed(m, q, golden.tensor<std::int32_t>("tokens").values);
    auto const hidden = golden.tensor<double>("f64.hidden_last");
    std::int64_t const row = m.config().hidden_size;
    for (int i = -1; i < m.config().num_layers; ++i) {
      EXPECT_LT(
          test::distance(seen.hidden_last[i].data(), hidden.values.data() + (i + 1) * row, row),
          1e-4)
          << "layer " << i;
    }
    EXPECT_EQ(m.length(1), 5);
  });
}

}  // namespace
}  // namespace ferry::deepseek
