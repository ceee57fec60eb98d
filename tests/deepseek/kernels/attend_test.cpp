// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/attend.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

struct tokens {
  int heads, columns, latent;
  std::vector<std::int32_t> sequences, positions;
  std::int64_t most = 0;  ///< positions of a sequence

  std::vector<float> run_everywhere(std::vector<float> const& queries,
                                    std::vector<float> const& cache) const {
    std::size_t const size = positions.size() * static_cast<std::size_t>(heads * latent);
    return stored_by_every_strip(std::vector<float>(size, 7), heads * most,
                                 [&](auto const& s, float* out, float* scratch) {
                                   attend{.queries = queries.data(),
                                          .cache = cache.data(),
                                          .sequence_stride = most * columns,
                                          .sequences = sequences.data(),
                                          .positions = positions.data(),
                                          .tokens = static_cast<std::int64_t>(positions.size()),
                                          .heads = heads,
                                          .columns = columns,
                                          .latent = latent,
                                          .scale = 0.7F,
                                          .scores = scratch,
                                          .scores_stride = heads * most,
                                          .out = out}(s);
                                 });
  }
  std::vector<float> queries(float amplitude) const {
    return random_floats(positions.size() * static_cast<std::size_t>(heads * columns), amplitude);
  }
  std::vector<float> cache() const {
    return random_floats(static_cast<std::size_t>(3 * most * columns), 1, 2);
  }
};

TEST(attend, follows_the_definition_with_the_same_bits_on_every_strip) {
  for (auto const& [heads, columns, latent] :
       {std::array{1, 2, 1}, {3, 30, 24}, {4, 80, 64}, {2, 41, 33}}) {
    tokens const t{heads, columns, latent, {2, 0, -1, 1, 1}, {0, 16, 3, 4, 38}, 40};
    auto const queries = t.queries(2);
    auto const cache = t.cache();
    auto const found = t.run_everywhere(queries, cache);
    for (std::size_t token = 0; token < t.positions.size(); ++token) {
      for (int h = 0; h < heads; ++h) {
        auto const row = token * static_cast<std::size_t>(heads) + static_cast<std::size_t>(h);
        float const* const q = queries.data() + row * static_cast<std::size_t>(columns);
        float const* const rows = cache.data() + std::max(t.sequences[token], 0) * t.most * columns;
        std::vector<double> sum(static_cast<std::size_t>(latent));
        double total = 0;
        for (int p = 0; p <= t.positions[token]; ++p) {
          double score = 0;
          for (int i = 0; i < columns; ++i) score += double{q[i]} * double{rows[p * columns + i]};
          double const weight = std::exp(double{0.7F} * score);
          total += weight;
          for (std::size_t i = 0; i < sum.size(); ++i) {
            sum[i] += weight * rows[static_cast<std::size_t>(p * columns) + i];
          }
        }
        for (std::size_t i = 0; i < sum.size(); ++i) {
          float const one = found[row * sum.size() + i];
          if (t.sequences[token] < 0) {
            EXPECT_EQ(one, 7) << "no token, so its row is left alone";
          } else {
            EXPECT_NEAR(one, sum[i] / total, 5e-6) << token << ", head " << h;
          }
        }
      }
    }
  }
}

TEST(attend, gives_nan_for_a_score_that_is_none_and_only_there) {
  tokens const t{2, 20, 16, {0, 1, 0}, {10, 10, 3}, 12};
  auto const queries = t.queries(1);
  auto cache = t.cache();
  cache[9 * 20 + 3] = NAN;  // position 9 of sequence 0
  auto const found = t.run_everywhere(queries, cache);
  EXPECT_TRUE(std::isnan(found[0]));
  EXPECT_TRUE(std::isnan(found[31]));
  for (std::size_t i = 32; i < 96; ++i) EXPECT_FALSE(std::isnan(found[i])) << i;
}

}  // namespace
}  // namespace ferry::deepseek
