// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/model.hpp>

#include <ferry/base/number_formats.hpp>

#include "deepseek/golden_prompt.hpp"
#include "deepseek/on_ranks.hpp"
#include "deepseek/owned_matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

namespace ferry::deepseek {
namespace {

using test::distance;

model load(std::string const& name, group const& ranks, model_options options = {}) {
  options.max_positions = 128;
  options.max_sequences = 4;
  std::string const directory = test::model_directory(name);
  return model::load(checkpoint::open(directory).value(), load_model_config(directory).value(),
                     ranks, options)
      .value();
}

/// The first sequence's logits on rank 0: the prompt in chunks, then `more` one by one. The other
/// ranks run sequences of their own beside it.
std::vector<float> logits_of(std::string const& name, int ranks, model_options const& options,
                             std::vector<std::vector<std::int32_t>> const& calls) {
  std::vector<float> logits;
  test::on_ranks(ranks, [&](group const& g) {
    model m = load(name, g, options);
    queue q;
    test::sequence own{g.rank() % 4};
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (g.rank() == 0) {
        own.feed(m, q, calls[i]);
      } else if (g.rank() == 1 && i % 2 == 0) {
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

std::vector<std::vector<std::int32_t>> prompt_and_decode(testing::golden_file const& golden) {
  std::vector<std::vector<std::int32_t>> calls{golden.tensor<std::int32_t>("tokens").values};
  auto const decoded = golden.tensor<std::int32_t>("decode_tokens").values;
  for (std::size_t i = 0; i + 1 < decoded.size(); ++i) calls.push_back({decoded[i]});
  return calls;
}

std::vector<std::vector<std::int32_t>> one_by_one(std::vector<std::int32_t> const& ids) {
  std::vector<std::vector<std::int32_t>> calls;
  for (std::int32_t id : ids) calls.push_back({id});
  return calls;
}

struct difference {
  double largest = 0;
  double rms = 0;
};

template <class Golden>
difference compare(std::vector<float> const& found, Golden const& expected) {
  difference d;
  EXPECT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double const apart = std::fabs(double{found[i]} - static_cast<double>(expected[i]));
    d.largest = std::isnan(apart) ? HUGE_VAL : std::max(d.largest, apart);
    d.rms += apart * apart;
  }
  d.rms = std::sqrt(d.rms / static_cast<double>(expected.size()));
  return d;
}

/// The lowest of the ids with the largest logit.
std::int32_t best(float const* logits, std::ptrdiff_t vocab) {
  return static_cast<std::int32_t>(std::max_element(logits, logits + vocab) - logits);
}

/// All of a prompt's golden logits, and the ids that they choose.
void expect_golden(std::string const& name, std::string const& prompt, int ranks) {
  testing::golden_file const golden(name + "/" + prompt + ".safetensors");
  auto const first = golden.tensor<double>("f64.logits");
  auto const decode = golden.tensor<double>("f64.decode_logits");
  auto const vocab = static_cast<std::ptrdiff_t>(first.shape[1]);
  auto expected = first.values;
  expected.insert(expected.end(), decode.values.begin() + vocab, decode.values.end());
  auto const found = logits_of(name, ranks, {}, prompt_and_decode(golden));
  EXPECT_LT(compare(found, expected).largest, 1e-3);
  auto const ids = golden.tensor<std::int32_t>("decode_tokens").values;
  float const* row = found.data() + (first.shape[0] - 1) * vocab;
  for (std::int32_t id : ids) {
    EXPECT_EQ(best(row, vocab), id);
    row += vocab;
  }
}

class tiny_model_on : public ::testing::TestWithParam<std::tuple<char const*, int>> {};
INSTANTIATE_TEST_SUITE_P(ranks, tiny_model_on,
                         ::testing::Combine(::testing::Values("tiny-A", "tiny-B", "tiny-C"),
                                            ::testing::Values(1, 2, 3, 4, 8)));

TEST_P(tiny_model_on, gives_the_golden_logits_in_prefill_and_decode) {
  auto const [name, ranks] = GetParam();
  expect_golden(name, "prompt_17", ranks);
}

TEST(model, gives_the_golden_logits_of_short_and_long_prompts) {
  for (char const* name : {"tiny-A", "tiny-B"}) {
    for (char const* prompt : {"prompt_5", "prompt_64"}) expect_golden(name, prompt, 2);
  }
}

class tiny_model : public ::testing::TestWithParam<char const*> {};
INSTANTIATE_TEST_SUITE_P(models, tiny_model, ::testing::Values("tiny-A", "tiny-B", "tiny-C"));

TEST_P(tiny_model, follows_the_golden_layer_by_layer) {
  std::string const name = GetParam();
  testing::golden_file const golden(name + "/prompt_17.safetensors");
  auto const tokens = golden.tensor<std::int32_t>("tokens").values;
  test::on_ranks(1, [&](group const& g) {
    model m = load(name, g);
    test::recorder seen;
    m.observe(&seen);
    queue q;
    test::sequence s{2};
    s.feed(m, q, tokens);
    std::int64_t const row = m.config().hidden_size;
    int const layers = m.config().num_layers;
    auto const hidden = golden.tensor<double>("f64.hidden_last");
    auto const attended = golden.tensor<double>("f64.attn_out_last");
    for (int i = -1; i < layers; ++i) {
      EXPECT_LT(distance(seen.hidden_last[i].data(), hidden.values.data() + (i + 1) * row, row),
                1e-4);
    }
    for (int i = 0; i < layers; ++i) {
      EXPECT_LT(distance(seen.attended_last[i].data(), attended.values.data() + i * row, row),
                1e-4);
    }
    EXPECT_LT(distance(seen.normal_last.data(),
                       golden.tensor<double>("f64.final_norm_last").values.data(), row),
              1e-4);
    std::vector<std::int32_t> choices;
    std::vector<float> weights;
    for (auto const& [layer, c] : seen.choices) choices.insert(choices.end(), c.begin(), c.end());
    for (auto const& [layer, w] : seen.weights) weights.insert(weights.end(), w.begin(), w.end());
    EXPECT_EQ(choices, golden.tensor<std::int32_t>("gate_indices").values);
    EXPECT_LT(compare(weights, golden.tensor<double>("f64.gate_weights")).largest, 1e-4);
    auto const latent = golden.tensor<float>("kv_latent");
    auto const keys = golden.tensor<float>("k_rope");
    std::int64_t const kv = m.config().kv_lora_rank;
    std::int64_t const rope = m.config().qk_rope_head_dim;
    auto const n = static_cast<int>(tokens.size());
    for (int i = 0; i < layers * n; ++i) {
      float const* cached = m.cached(i / n, 2, i % n).data();
      EXPECT_LT(distance(cached, latent.values.data() + i * kv, kv), 1e-4);
      EXPECT_LT(distance(cached + kv, keys.values.data() + i * rope, rope), 1e-4);
    }

    seen.choices.clear();
    auto const decoded = golden.tensor<std::int32_t>("decode_tokens").values;
    for (std::size_t i = 0; i + 1 < decoded.size(); ++i) s.feed(m, q, {decoded[i]});
    choices.clear();
    for (auto const& [layer, c] : seen.choices) choices.insert(choices.end(), c.begin(), c.end());
    EXPECT_EQ(choices, golden.tensor<std::int32_t>("decode_gate_indices").values);
  });
}

TEST_P(tiny_model, gives_the_same_bits_for_any_ranks_chunks_and_layouts) {
  std::string const name = GetParam();
  testing::golden_file const golden(name + "/prompt_17.safetensors");
  auto const tokens = golden.tensor<std::int32_t>("tokens").values;
  model_options options;
  options.reduction = reduction::per_choice;
  auto const whole = logits_of(name, 1, options, {tokens});
  EXPECT_EQ(logits_of(name, 1, options, one_by_one(tokens)), whole);
  std::vector<std::vector<std::int32_t>> const chunks{{tokens.begin(), tokens.begin() + 6},
                                                      {tokens.begin() + 6, tokens.end()}};
  for (int ranks : {2, 3, 4, 8}) EXPECT_EQ(logits_of(name, ranks, options, chunks), whole) << ranks;
  options.layout = layout::in_place;
  EXPECT_EQ(logits_of(name, 2, options, chunks), whole);
  options.layout = layout::padded;
  options.round_tokens = 4;
  EXPECT_EQ(logits_of(name, 3, options, chunks), whole);
}

TEST_P(tiny_model, stays_within_the_noise_of_bf16) {
  std::string const name = GetParam();
  testing::golden_file const golden(
      name + (name == "tiny-C" ? "/prompt_17.safetensors" : "/prompt_64.safetensors"));
  auto const tokens = golden.tensor<std::int32_t>("tokens").values;
  model_options options;
  options.compute = dtype::bf16;
  options.wire = options.combine_wire = wire::bf16;
  auto const expected = golden.tensor<double>("f64.logits");
  auto const noise = compare(golden.floats("bf16.logits").values, expected);
  auto const found = compare(logits_of(name, 2, options, one_by_one(tokens)), expected);
  EXPECT_LT(found.largest, 2 * noise.largest);
  EXPECT_LT(found.rms, 1.5 * noise.rms);
  EXPECT_GT(found.rms, 0);
}

TEST(model, follows_the_golden_with_fp8_activations) {
  testing::golden_file const golden("tiny-C/prompt_17.safetensors");
  model_options options;
  options.quantise_activations = true;
  auto const found =
      compare(logits_of("tiny-C", 2, options, {golden.tensor<std::int32_t>("tokens").values}),
              golden.tensor<float>("w8a8_f64.logits"));
  EXPECT_LT(found.largest, 0.45);
  EXPECT_LT(found.rms, 0.04);
}

TEST(model, reads_sharded_checkpoints_alike) {
  testing::golden_file const golden("tiny-A/prompt_5.safetensors");
  std::vector<std::vector<std::int32_t>> const calls{golden.tensor<std::int32_t>("tokens").values};
  EXPECT_EQ(logits_of("tiny-A-sharded", 2, {}, calls), logits_of("tiny-A", 2, {}, calls));
}

TEST(model, takes_the_embedding_for_its_head_where_they_are_tied) {
  std::string const directory = test::model_directory("tiny-A");
  checkpoint const weights = checkpoint::open(directory).value();
  model_config config = load_model_config(directory).value();
  config.tie_word_embeddings = true;
  test::on_ranks(1, [&](group const& g) {
    model m = model::load(weights, config, g, {.max_positions = 8}).value();
    test::recorder seen;
    m.observe(&seen);
    queue q;
    test::sequence s;
    s.feed(m, q, {3, 1, 4});
    tensor_view const embedding = weights.tensor("model.embed_tokens.weight").value();
    auto const* codes = reinterpret_cast<bf16 const*>(embedding.data.data());
    for (std::size_t id = 0; id < 256; ++id) {
      double sum = 0;
      for (std::size_t i = 0; i < 256; ++i) {
        sum += double{to_float(codes[id * 256 + i])} * double{seen.normal_last[i]};
      }
      EXPECT_NEAR(s.logits[2 * 256 + id], sum, 1e-4);
    }
  });
}

TEST(model, loads_only_what_the_config_describes) {
  std::string const directory = test::model_directory("tiny-A");
  checkpoint const weights = checkpoint::open(directory).value();
  model_config const config = load_model_config(directory).value();
  test::on_ranks(1, [&](group const& g) {
    auto const refusal = [&](model_config const& c, model_options const& o = {}) {
      auto const m = model::load(weights, c, g, o);
      return m ? std::string("loaded") : m.error().message;
    };
    model_config other = config;
    other.moe_intermediate_size = 64;
    EXPECT_THAT(refusal(other),
                ::testing::HasSubstr("tensor model.layers.1.mlp.experts.0.gate_proj.weight has "
                                     "shape [128, 256], expected [64, 256]"));
    other = config;
    other.num_layers = 4;
    EXPECT_THAT(refusal(other), ::testing::HasSubstr("model.layers.3.input_layernorm.weight"));
    other = config;
    other.vocab_size = 300;
    EXPECT_THAT(refusal(other), ::testing::HasSubstr("expected [300, 256]"));
    EXPECT_THAT(refusal(config, {.max_tokens = 0}), ::testing::HasSubstr("max_tokens 0"));
    EXPECT_THAT(refusal(config, {.compute = dtype::fp16}), ::testing::HasSubstr("fp16"));
    EXPECT_THAT(refusal(config, {.wire = wire::opaque}), ::testing::HasSubstr("opaque"));
  });
}

TEST(model, refuses_a_batch_outside_its_limits_and_goes_on) {
  test::on_ranks(1, [&](group const& g) {
    std::string const directory = test::model_directory("tiny-A");
    model m = model::load(checkpoint::open(directory).value(), load_model_config(directory).value(),
                          g, {.max_tokens = 4, .max_sequences = 2, .max_positions = 6})
                  .value();
    queue q;
    using ids = std::vector<std::int32_t>;
    auto const refusal = [&](ids const& tokens, ids const& sequences, ids const& positions) {
      auto const r = m.forward(q, {tokens, sequences, positions}, {});
      EXPECT_TRUE(r || r.error().code == error_code::invalid_argument);
      return r ? std::string("done") : r.error().message;
    };
    using ::testing::HasSubstr;
    EXPECT_EQ(refusal({1, 2, 3}, {0, 0, 1}, {0, 1, 0}), "done");
    EXPECT_THAT(refusal({256}, {0}, {2}), HasSubstr("token id 256 in a vocabulary of 256"));
    EXPECT_THAT(refusal({-1}, {0}, {2}), HasSubstr("token id -1"));
    EXPECT_THAT(refusal({1}, {2}, {0}), HasSubstr("sequence 2, max_sequences is 2"));
    EXPECT_THAT(refusal({1}, {0}, {6}), HasSubstr("position 6 of sequence 0, max_positions is 6"));
    EXPECT_THAT(refusal({1}, {0}, {3}), HasSubstr("position 3 of sequence 0 comes after 1"));
    EXPECT_THAT(refusal({1, 1}, {1, 1}, {1, 1}), HasSubstr("position 1 of sequence 1"));
    EXPECT_THAT(refusal({1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}, {2, 3, 4, 5, 6}),
                HasSubstr("5 tokens, max_tokens is 4"));
    EXPECT_THAT(refusal({1}, {0, 0}, {2}), HasSubstr("2 sequences"));
    EXPECT_EQ(m.length(0), 2);
    EXPECT_EQ(m.length(1), 1);
    EXPECT_EQ(refusal({1, 2}, {0, 1}, {2, 0}), "done");  // slot 1 starts anew
    EXPECT_EQ(m.length(0), 3);
    EXPECT_EQ(m.length(1), 1);
    std::vector<float> logits(255);
    ids const one{1};
    ids const zero{0};
    EXPECT_FALSE(m.forward(q, {one, zero, zero}, dense(logits.data(), 1, 255)));
  });
}

TEST(model, counts_traffic_and_time) {
  test::on_ranks(2, [&](group const& g) {
    model m = load("tiny-A", g);
    queue q;
    test::sequence s;
    s.feed(m, q, {1, 2, 3});
    EXPECT_EQ(m.counters().steps, 2U);
    EXPECT_GT(m.counters().rows_received, 0U);
    EXPECT_GT(m.times().attention, 0);
    EXPECT_GT(m.times().dense, 0);
    EXPECT_GT(m.times().moe.experts, 0);
    EXPECT_GT(m.times().head, 0);
    g.barrier().value();
  });
}

}  // namespace
}  // namespace ferry::deepseek
