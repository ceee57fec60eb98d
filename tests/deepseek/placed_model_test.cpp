// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// A model gives the same logits, bit for bit, wherever its experts are, with replicas, and while
// they move.

#include <ferry/balance/migrate.hpp>
#include <ferry/deepseek/model.hpp>

#include "deepseek/golden_prompt.hpp"
#include "deepseek/on_ranks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace ferry::deepseek {
namespace {

using ::testing::HasSubstr;
using dice = std::mt19937_64;

constexpr int decoded = 24;

model_options options_with(dtype compute) {
  model_options o;
  o.compute = compute;
  o.reduction = reduction::per_choice;
  o.max_tokens = 20;
  o.max_sequences = 2;
  o.max_positions = 64;
  o.sampled_tokens = 2;
  return o;
}
model load(std::string const& name, group const& ranks, model_options const& options) {
  std::string const directory = test::model_directory(name);
  return model::load(checkpoint::open(directory).value(), load_model_config(directory).value(),
                     ranks, options)
      .value();
}
/// Layers with experts of tiny-A, and its experts.
constexpr int layers = 2, num_experts = 16;

placement random_placement(std::uint64_t seed, int ranks, int redundant) {
  dice from(seed);
  placement p{layers, num_experts, ranks, 1, num_experts + redundant, {}};
  for (int l = 0; l < layers; ++l) {
    std::vector<std::int32_t> layer;
    do {
      layer.clear();
      for (int s = 0; s < p.num_slots; ++s)
        layer.push_back(s < num_experts ? s : static_cast<std::int32_t>(from() % num_experts));
      std::shuffle(layer.begin(), layer.end(), from);
    } while (!validate(placement{1, num_experts, ranks, 1, p.num_slots, layer}));
    p.experts.insert(p.experts.end(), layer.begin(), layer.end());
  }
  return p;
}

struct run_of {
  int ranks = 1;
  std::optional<placement> start = {};
  replica_choice replicas = replica_choice::hash;
  std::vector<placement> targets =
      {};  ///< migrated to, one after the other, from the first step on
  std::string device = "cpu";
  int steps = decoded;
  std::size_t bytes_per_step = 700'000;
};

/// Rank 0's logits of a prompt and of steps whose tokens are fixed; the others decode beside it.
std::vector<float> logits_of(dtype compute, run_of const& run) {
  std::vector<float> logits;
  test::on_ranks(run.ranks, [&](group const& g) {
    model_options o = options_with(compute);
    o.experts_at = run.start;
    o.replicas = run.replicas;
    o.where = device::open(run.device).value();
    model m = load("tiny-A", g, o);
    queue q = queue::on(o.where).value();
    std::unique_ptr<expert_store> store;
    std::optional<migration> moving;
    if (!run.targets.empty()) {
      store = m.store_of_experts(16).value();
      moving.emplace(
          migration::make(*m.expert_exchange(), *store, m.experts_at(),
                          {.bytes_per_step = run.bytes_per_step, .replicas = run.replicas})
              .value());
    }
    test::sequence own{};
    own.feed(m, q, {static_cast<std::int32_t>(3 + g.rank()), 17, 40});
    auto target = run.targets.begin();
    std::size_t done = 0;
    for (int i = 0; i < run.steps; ++i) {
      own.feed(m, q, {static_cast<std::int32_t>((i * 37 + g.rank()) % 250)});
      if (!moving) continue;
      bool const was_running = moving->running();
      if (!was_running && target != run.targets.end()) moving->begin(*target++).value();
      moving->advance().value();
      done += was_running && !moving->running();
    }
    EXPECT_EQ(done, run.targets.size()) << "not all migrations ended within the steps";
    if (g.rank() == 0) logits = own.logits;
    g.barrier().value();
  });
  return logits;
}

class placed_model : public ::testing::TestWithParam<dtype> {};
INSTANTIATE_TEST_SUITE_P(types, placed_model, ::testing::Values(dtype::f32, dtype::bf16));

TEST_P(placed_model, gives_the_same_bits_wherever_its_experts_are) {
  std::vector<float> const want = logits_of(GetParam(), {.ranks = 1});
  ASSERT_FALSE(want.empty());
  for (int ranks = 1; ranks <= 4; ++ranks) {
    EXPECT_EQ(logits_of(GetParam(), {.ranks = ranks, .start = random_placement(7, ranks, 0)}), want)
        << ranks << " ranks, permuted";
    if (ranks == 1) continue;
    EXPECT_EQ(logits_of(GetParam(),
                        {.ranks = ranks,
                         .start = random_placement(8, ranks, 2 * ranks),
                         .replicas = ranks == 3 ? replica_choice::nearest : replica_choice::hash}),
              want)
        << ranks << " ranks, with replicas";
  }
}

TEST_P(placed_model, gives_the_same_bits_while_its_experts_move) {
  std::vector<float> const want = logits_of(GetParam(), {.ranks = 1});
  for (int ranks = 2; ranks <= 4; ++ranks) {
    EXPECT_EQ(logits_of(GetParam(), {.ranks = ranks,
                                     .start = random_placement(1, ranks, ranks),
                                     .targets = {random_placement(2, ranks, ranks),
                                                 random_placement(3, ranks, ranks)}}),
              want)
        << ranks << " ranks";
  }
}

// Lanes of an emulated device have sums of their own order: held against themselves.
TEST(placed_device_model, gives_the_same_bits_while_its_experts_move) {
  int const steps = 3;
  std::vector<float> const want =
      logits_of(dtype::f32, {.ranks = 2, .device = "emulated:32", .steps = steps});
  EXPECT_EQ(logits_of(dtype::f32, {.ranks = 2,
                                   .start = random_placement(4, 2, 2),
                                   .targets = {random_placement(5, 2, 2)},
                                   .device = "emulated:32",
                                   .steps = steps,
                                   .bytes_per_step = std::size_t{1} << 23}),
            want);
}

TEST(placed_model_options, takes_a_placement_of_all_layers_and_refuses_others) {
  test::on_ranks(2, [&](group const& g) {
    std::string const directory = test::model_directory("tiny-A");
    auto const config = load_model_config(directory).value();
    auto const weights = checkpoint::open(directory).value();
    auto const loaded = [&](placement const& p) {
      model_options o = options_with(dtype::f32);
      o.experts_at = p;
      return model::load(weights, config, g, o);
    };
    placement all = contiguous_placement(3, num_experts, 2).value();
    std::swap(all.layer(0)[0], all.layer(0)[15]);  // a dense layer
    std::swap(all.layer(2)[1], all.layer(2)[14]);
    result<model> m = loaded(all);
    ASSERT_TRUE(m);
    placement want = contiguous_placement(2, num_experts, 2).value();
    std::swap(want.layer(1)[1], want.layer(1)[14]);
    EXPECT_EQ(m->experts_at(), want);
    EXPECT_THAT(loaded(contiguous_placement(5, num_experts, 2).value()).error().message,
                HasSubstr("5 layers"));
    EXPECT_THAT(loaded(contiguous_placement(2, 15, 2).value()).error().message,
                HasSubstr("15 experts"));
    EXPECT_THAT(loaded(contiguous_placement(2, num_experts, 4).value()).error().message,
                HasSubstr("4 ranks"));
    // The store knows its limits.
    EXPECT_FALSE(m->store_of_experts(0));
    auto const store = m->store_of_experts(2).value();
    std::vector<std::byte> bytes(store->expert_bytes());
    EXPECT_TRUE(store->read({1, 7}, 0, bytes));
    EXPECT_FALSE(store->read({1, 8}, 0, bytes));
    EXPECT_FALSE(store->read({2, 0}, 0, bytes));
    EXPECT_FALSE(store->read({0, 0}, 8, bytes)) << "beyond its end";
    EXPECT_FALSE(store->read_staged(0, 0, bytes)) << "nothing lies there";
    EXPECT_FALSE(store->stage(2, {0, 0}, bytes));
    EXPECT_FALSE(store->stage(0, {0, 0}, std::span(bytes).first(8)));
    g.barrier().value();
  });
}

}  // namespace
}  // namespace ferry::deepseek
