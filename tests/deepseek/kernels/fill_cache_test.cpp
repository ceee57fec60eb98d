// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/deepseek/kernels/fill_cache.hpp>

#include "deepseek/kernels/every_strip.hpp"

#include <gtest/gtest.h>

#include <array>

namespace ferry::deepseek {
namespace {

using test::odd_floats;
using test::random_floats;
using test::stored_by_every_strip;

TEST(fill_cache, writes_normalised_latents_and_turned_keys_where_their_tokens_belong) {
  for (auto const [latent, dimensions] : {std::array{64, 16}, {33, 2}}) {
    int const columns = latent + dimensions;
    auto const from = random_floats(static_cast<std::size_t>(4 * columns), 3);
    auto const weight = random_floats(static_cast<std::size_t>(latent), 1, 2);
    auto const angles = random_floats(static_cast<std::size_t>(5 * dimensions), 1, 3);
    std::int32_t const sequences[] = {1, 0, -1, 1};
    std::int32_t const positions[] = {3, 0, 1, 4};
    auto const cache = stored_by_every_strip(
        static_cast<std::size_t>(2 * 5 * columns), 7.0F, [&](auto const& s, float* out) {
          fill_cache{.from = dense(from.data(), 4, std::int64_t{columns}),
                     .weight = weight.data(),
                     .epsilon = 1e-6F,
                     .sequences = sequences,
                     .positions = positions,
                     .angles = angles.data(),
                     .latent = latent,
                     .dimensions = dimensions,
                     .cache = out,
                     .sequence_stride = 5 * columns}(s);
        });
    std::vector<float> expected(cache.size(), 7);
    for (int t : {0, 1, 3}) {
      float* const row = expected.data() + (sequences[t] * 5 + positions[t]) * columns;
      float const* const x = from.data() + t * columns;
      normalise_row(test::host_strip{}, x, weight.data(), 1e-6F, latent, row);
      rotate(test::host_strip{}, x + latent, angles.data() + positions[t] * dimensions,
             dimensions / 2, row + latent);
    }
    EXPECT_EQ(cache, expected);
  }
}

}  // namespace
}  // namespace ferry::deepseek
