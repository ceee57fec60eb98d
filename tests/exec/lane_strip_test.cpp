// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/lane_strip.hpp>

#include <ferry/exec/emulated/emulated_strip.hpp>

#include "contract/strip_contract.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;

TEST(lane_strip, keeps_the_contract_on_every_strip_of_a_grid) {
  for (int lanes : {32, 64}) {
    lane_grid const grid{2, 2};
    std::vector<float> memory(static_cast<std::size_t>(20 * strips_of(grid, lanes)));
    run_on_strips(grid, lanes, 1, [&](emulated_strip const& s) {
      test::expect_strip(s);
      test::expect_stores(s, memory.data() + 20 * s.index());
    }).value();
  }
}

}  // namespace
