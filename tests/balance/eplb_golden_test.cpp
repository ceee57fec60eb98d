// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The solvers beside DeepSeek's EPLB, on its golden inputs.
#include <ferry/balance/load_files.hpp>
#include <ferry/balance/metrics.hpp>
#include <ferry/balance/place.hpp>
#include <ferry/files/safetensors.hpp>

#include "data/test_data.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace ferry {
namespace {

/// One question to EPLB, and its answer.
struct golden {
  std::string file, name;
  placement_options options;
  expert_loads loads;
  std::vector<std::int32_t> slots;
  std::vector<double> imbalance;
};

template <class T>
std::vector<T> elements(safetensors const& file, std::string const& name) {
  auto const view = file.tensor(name).value();
  std::vector<T> values(view.data.size() / sizeof(T));
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

std::vector<golden> all_goldens() {
  std::vector<golden> all;
  for (std::string const file : {"readme_example", "zipf0", "zipf1"}) {
    auto const path = test::test_data() / "eplb" / (file + ".safetensors");
    auto const tensors = safetensors::open(path).value();
    auto const loads = read_loads(path).value().front();
    for (auto const& [name, facts] : tensors.metadata()) {
      golden g{file,
               name,
               {.num_ranks = 8},
               loads,
               elements<std::int32_t>(tensors, name + ".phy2log"),
               elements<double>(tensors, name + ".gpu_imbalance")};
      int replicas = 0;
      if (std::sscanf(name.c_str(), "r%d_g%d_n%d", &replicas, &g.options.num_groups,
                      &g.options.num_nodes) != 3)
        ADD_FAILURE() << name << " is no name of a case";
      g.options.redundant = replicas - loads.num_experts;
      all.push_back(std::move(g));
    }
  }
  return all;
}

TEST(eplb_golden, policy_reproduces_every_plan) {
  auto const goldens = all_goldens();
  ASSERT_EQ(goldens.size(), 29u);
  for (auto const& g : goldens) {
    SCOPED_TRACE(g.file + " " + g.name);
    auto const where = place(placement_policy::eplb, {.windows = {&g.loads, 1}}, g.options).value();
    EXPECT_EQ(where.experts, g.slots);
    auto const b = balance_of(where, g.loads).value();
    for (std::size_t l = 0; l < g.imbalance.size(); ++l)
      EXPECT_NEAR(b.max_over_mean[l], g.imbalance[l], 1e-6 * g.imbalance[l]);
  }
}

TEST(eplb_golden, permute_is_at_the_bound_and_never_above) {
  for (auto const& g : all_goldens()) {
    if (g.options.redundant != 0) continue;
    SCOPED_TRACE(g.file + " " + g.name);
    auto const where =
        place(placement_policy::permute, {.windows = {&g.loads, 1}}, g.options).value();
    ASSERT_TRUE(validate(where));
    auto const b = balance_of(where, g.loads).value();
    for (int l = 0; l < g.loads.num_layers; ++l) {
      auto const mine = g.loads.layer(l);
      double const mean = std::accumulate(mine.begin(), mine.end(), 0.0) / 8;
      double const most = b.max_over_mean[static_cast<std::size_t>(l)];
      EXPECT_LE(most * mean, 1.0005 * busiest_rank_bound(mine, 8)) << l;
      EXPECT_LE(most, g.imbalance[static_cast<std::size_t>(l)] * (1 + 1e-9)) << l;
    }
  }
}

TEST(eplb_golden, replicas_are_level_at_least_as_well_and_mostly_better) {
  int cases = 0, better = 0;
  auto const compare = [&](expert_loads const& loads, placement_options const& o) {
    SCOPED_TRACE(testing::Message() << o.num_ranks << " ranks, " << o.redundant << " redundant, "
                                    << o.num_nodes << " nodes");
    auto const ours = place(placement_policy::replicate, {.windows = {&loads, 1}}, o).value();
    ASSERT_TRUE(validate(ours));
    auto const theirs = place(placement_policy::eplb, {.windows = {&loads, 1}}, o).value();
    auto const a = balance_of(ours, loads).value(), b = balance_of(theirs, loads).value();
    for (std::size_t l = 0; l < a.max_over_mean.size(); ++l) {
      EXPECT_LE(a.max_over_mean[l], b.max_over_mean[l] * (1 + 1e-12)) << "layer " << l;
      ++cases;
      better += a.max_over_mean[l] < b.max_over_mean[l] * (1 - 1e-9);
    }
  };
  for (auto const& g : all_goldens())
    if (g.options.redundant > 0) compare(g.loads, g.options);
  for (std::string const file : {"zipf0", "zipf1"}) {
    auto const loads =
        read_loads(test::test_data() / "eplb" / (file + ".safetensors")).value().front();
    for (int ranks : {16, 32, 64})
      for (int redundant : {0, ranks, 2 * ranks, 256})
        for (int nodes : {1, ranks / 8})
          compare(
              loads,
              {.num_ranks = ranks, .num_nodes = nodes, .num_groups = 8, .redundant = redundant});
  }
  EXPECT_GT(better * 4, cases * 3) << better << " of " << cases;
}

}  // namespace
}  // namespace ferry
