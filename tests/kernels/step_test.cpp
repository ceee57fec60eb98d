// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/step.hpp>

#include "kernels/all_ranks.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

world mapped_world(std::uint64_t seed) {
  world w = random_world(seed);
  w.options.via = reach::mapped;
  return w;
}

TEST(step, gives_what_the_oracle_gives_at_every_code_level) {
  for (code_level level : {code_level::v2, code_level::v3, code_level::v4}) {
    if (level > best_code_level()) break;
    for (std::uint64_t seed = 1; seed <= 25; ++seed) {
      world const w = mapped_world(seed);
      all_ranks ranks(w, level);
      complaints wrong;
      for (step const& s : w.steps) ranks.run_step(w, s, wrong);
      ASSERT_TRUE(wrong.none()) << "v" << static_cast<int>(level) << ", seed " << seed << ": "
                                << describe(w) << "\n"
                                << wrong.text();
    }
  }
}

// A kernel never names the width of a team; here is one of 32 lanes and one of 64, several teams to
// a block.
void run_lanes(int lanes) {
  for (std::uint64_t seed = 100; seed < 100 + static_cast<std::uint64_t>(effort(6)); ++seed) {
    world w = mapped_world(seed);
    for (std::uint64_t more = 1; w.options.hidden > 260 || w.ranks * w.options.max_tokens > 40;
         ++more)
      w = mapped_world(seed + 1000 * more);
    lane_grid const grid{.blocks = 1 + static_cast<int>(seed % 3),
                         .teams = 1 + static_cast<int>(seed / 3 % 3)};
    all_ranks ranks(w, lanes, grid);
    complaints wrong;
    for (int i = 0; i < 3; ++i) ranks.run_step(w, w.steps[static_cast<std::size_t>(i)], wrong);
    ASSERT_TRUE(wrong.none()) << lanes << " lanes, seed " << seed << ", " << grid.blocks
                              << " blocks of " << grid.teams << ": " << describe(w) << "\n"
                              << wrong.text();
  }
}
TEST(step, gives_the_same_on_teams_of_32_lanes) {
  run_lanes(32);
}
TEST(step, gives_the_same_on_teams_of_64_lanes) {
  run_lanes(64);
}

}  // namespace
