// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Runs a kernel on the strips of a CPU and of emulated teams, and compares what they stored.
#pragma once

#include <ferry/base/number_formats.hpp>
#include <ferry/exec/cpu/cpu_strip.hpp>
#include <ferry/exec/emulated/emulated_strip.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace ferry::test {

using host_strip = cpu_strip<void, 4>;

/// Bit for bit, but that one NaN is as good as another.
template <class T>
bool same(T const& a, T const& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}
inline bool same(float a, float b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

struct played_grid {
  lane_grid grid;
  int lanes;
};
/// Fewer strips than items, and more.
inline constexpr played_grid played_grids[] = {
    {{1, 1}, 32}, {{2, 3}, 32}, {{1, 1}, 64}, {{3, 2}, 64}};

/// What the strip of a CPU stores, starting from `before`; expects every other kind of strip to
/// store the same. `run(strip, out, scratch)` runs the kernel; the scratch is `scratch` floats per
/// strip, strip after strip, filled with NaN.
template <class T, class Run>
std::vector<T> stored_by_every_strip(std::vector<T> const& before, std::int64_t scratch,
                                     Run const& run) {
  auto const scratch_of = [&](int strips) {
    return std::vector<float>(static_cast<std::size_t>(scratch * strips), NAN);
  };
  std::vector<T> expected = before;
  auto own = scratch_of(1);
  run(host_strip{}, expected.data(), own.data());
  for (played_grid const& played : played_grids) {
    for (std::uint64_t seed = 1; seed < 4; ++seed) {
      std::vector<T> found = before;
      auto theirs = scratch_of(strips_of(played.grid, played.lanes));
      auto const ran = run_on_strips(played.grid, played.lanes, seed, [&](emulated_strip const& s) {
        run(s, found.data(), theirs.data());
      });
      EXPECT_TRUE(ran) << (ran ? "" : ran.error().message);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (same(expected[i], found[i])) continue;
        ADD_FAILURE() << "element " << i << " of " << expected.size() << " differs on "
                      << played.grid.blocks << " blocks of " << played.grid.teams << " teams of "
                      << played.lanes << " lanes, seed " << seed;
        return expected;
      }
    }
  }
  return expected;
}
template <class T, class Run>
std::vector<T> stored_by_every_strip(std::size_t size, T fill, Run const& run) {
  return stored_by_every_strip(std::vector<T>(size, fill), 0,
                               [&](auto const& s, T* out, float*) { run(s, out); });
}

inline std::vector<float> random_floats(std::size_t n, float amplitude = 1, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (float& v : values) {
    v = amplitude * (static_cast<float>(random() >> 8) * 0x1p-23F - 1);
  }
  return values;
}

/// NaN, infinities, zeros of both signs and subnormals in between.
inline std::vector<float> odd_floats(std::size_t n) {
  std::vector<float> values = random_floats(n, 1000, 7);
  float const odd[] = {NAN, HUGE_VALF, -HUGE_VALF, 0.0F, -0.0F, 1e-42F, -1e-42F, 3e38F, 1e-30F};
  for (std::size_t i = 0; i < n; i += 3) values[i] = odd[i / 3 % std::size(odd)];
  return values;
}

}  // namespace ferry::test
