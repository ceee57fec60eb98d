// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/lane_strip.hpp>

#include <ferry/exec/emulated/emulated_strip.hpp>

#include "contract/strip_inputs.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;

TEST(lane_strip, keeps_the_contract_on_every_strip_of_a_grid) {
  test::strip_inputs const in = test::make_strip_inputs();
  for (int lanes : {32, 64}) {
    lane_grid const grid{2, 2};
    auto const strips = static_cast<std::size_t>(strips_of(grid, lanes));
    std::vector<float> memory(strips * test::check_strips::memory_of_a_strip);
    std::vector<std::int32_t> wrong(strips * test::check_strips::num_checks, -1);
    run_on_strips(grid, lanes, 1, test::check_strips{&in, memory.data(), wrong.data()}).value();
    EXPECT_EQ(wrong, std::vector<std::int32_t>(wrong.size(), 0));
  }
}

}  // namespace
