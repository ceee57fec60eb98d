// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/choose_experts.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

struct choice_case {
  int experts, groups, kept, topk;
  bool softmax, two_best, normalise;
};

struct outcome {
  std::int32_t id;
  float weight;
};

std::vector<outcome> run_everywhere(choice_case const& c, std::vector<float> const& logits,
                                    float const* bias) {
  auto const tokens = static_cast<std::int64_t>(logits.size()) / c.experts;
  std::int64_t const size = tokens * c.topk;
  std::int64_t const scratch = choose_experts::scratch_of(c.experts, c.groups);
  // Ids and weights in one array: both must be the same everywhere.
  auto const found = stored_by_every_strip(
      std::vector<float>(static_cast<std::size_t>(2 * size)), scratch,
      [&](auto const& s, float* out, float* own) {
        choose_experts{
            .logits = dense(logits.data(), tokens, std::int64_t{c.experts}),
            .bias = bias,
            .choices = dense(reinterpret_cast<std::int32_t*>(out), tokens, std::int64_t{c.topk}),
            .weights = dense(out + size, tokens, std::int64_t{c.topk}),
            .num_groups = c.groups,
            .kept_groups = c.kept,
            .softmax_scores = c.softmax,
            .group_is_two_best = c.two_best,
            .normalise = c.normalise,
            .scale = 2.5F,
            .scratch = own,
            .scratch_stride = scratch}(s);
      });
  std::vector<outcome> all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
    std::int32_t id = 0;
    std::memcpy(&id, &found[i], sizeof id);
    all.push_back({id, found[static_cast<std::size_t>(size) + i]});
  }
  return all;
}

/// The same by sorting, in f64.
std::vector<int> expected_ids(choice_case const& c, float const* logits, float const* bias) {
  std::vector<double> keys(static_cast<std::size_t>(c.experts));
  double sum = 0;
  for (int i = 0; i < c.experts; ++i) sum += std::exp(double{logits[i]});
  for (int i = 0; i < c.experts; ++i) {
    double const score =
        c.softmax ? std::exp(double{logits[i]}) / sum : 1 / (1 + std::exp(-double{logits[i]}));
    keys[static_cast<std::size_t>(i)] = score + (bias != nullptr ? bias[i] : 0);
  }
  int const size = c.experts / c.groups;
  std::vector<std::pair<double, int>> groups;
  for (int g = 0; g < c.groups; ++g) {
    std::vector<double> in(keys.begin() + g * size, keys.begin() + (g + 1) * size);
    std::sort(in.rbegin(), in.rend());
    groups.emplace_back(-(c.two_best && size > 1 ? in[0] + in[1] : in[0]), g);
  }
  std::stable_sort(groups.begin(), groups.end());
  std::vector<std::pair<double, int>> left;
  for (int g = 0; g < c.kept; ++g) {
    int const first = groups[static_cast<std::size_t>(g)].second * size;
    for (int i = first; i < first + size; ++i)
      left.emplace_back(-keys[static_cast<std::size_t>(i)], i);
  }
  std::sort(left.begin(), left.end());
  std::vector<int> ids;
  for (int k = 0; k < c.topk; ++k) ids.push_back(left[static_cast<std::size_t>(k)].second);
  return ids;
}

TEST(choose_experts, chooses_as_sorting_does_with_the_same_bits_on_every_strip) {
  for (choice_case const& c : {choice_case{256, 8, 4, 8, false, true, true},
                               {160, 8, 3, 6, true, false, false},
                               {17, 1, 1, 17, true, false, true},
                               {6, 6, 2, 2, false, true, true},
                               {1, 1, 1, 1, false, false, false}}) {
    auto const logits = random_floats(static_cast<std::size_t>(9 * c.experts), 3);
    auto const bias = random_floats(static_cast<std::size_t>(c.experts), 0.1F, 5);
    float const* const used = c.two_best ? bias.data() : nullptr;
    auto const found = run_everywhere(c, logits, used);
    for (int token = 0; token < 9; ++token) {
      auto const ids = expected_ids(c, logits.data() + token * c.experts, used);
      for (int k = 0; k < c.topk; ++k) {
        EXPECT_EQ(found[static_cast<std::size_t>(token * c.topk + k)].id,
                  ids[static_cast<std::size_t>(k)])
            << c.experts << " experts, token " << token << ", choice " << k;
      }
    }
  }
}

TEST(choose_experts, takes_the_lowest_id_among_equals) {
  choice_case const c{64, 4, 2, 5, false, true, true};
  auto const found = run_everywhere(c, std::vector<float>(64, 0.25F), nullptr);
  for (std::size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(found[k].id, static_cast<int>(k));
    EXPECT_NEAR(found[k].weight, 0.5F, 1e-6);
  }
}

TEST(choose_experts, counts_nan_as_the_lowest_and_never_takes_an_expert_twice) {
  choice_case const c{32, 4, 2, 16, false, true, false};
  std::vector<float> logits(32, NAN);
  logits[9] = 1;
  logits[30] = -HUGE_VALF;
  auto const found = run_everywhere(c, logits, nullptr);
  EXPECT_EQ(found[0].id, 9);
  EXPECT_EQ(found[1].id, 0) << "the lowest of those that are NaN, in the kept groups 1 and 0";
  std::vector<bool> seen(32);
  for (outcome const& o : found) {
    ASSERT_TRUE(o.id >= 0 && o.id < 32);
    EXPECT_FALSE(seen[static_cast<std::size_t>(o.id)]) << o.id;
    seen[static_cast<std::size_t>(o.id)] = true;
  }
}

TEST(choose_experts, gives_weights_of_zero_for_scores_of_zero) {
  choice_case const c{16, 1, 1, 3, false, false, true};
  for (outcome const& o : run_everywhere(c, std::vector<float>(16, -HUGE_VALF), nullptr)) {
    EXPECT_EQ(o.weight, 0);
  }
}

}  // namespace
}  // namespace ferry::deepseek
