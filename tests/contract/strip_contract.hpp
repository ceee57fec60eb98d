// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What every strip must do, whatever the device: the contract of the concept `strip`.
#pragma once

#include "contract/contract_case.hpp"
#include "contract/strip_inputs.hpp"

#include <numeric>
#include <vector>

namespace ferry::test {

class strip_contract : public contract_case {};

TEST_P(strip_contract, adds_finds_and_stores_as_promised) {
  static constexpr char const* names[] = {"sum",
                                          "largest",
                                          "first_equal",
                                          "first_equal of none",
                                          "at_lane",
                                          "largest with NaN",
                                          "sum of five",
                                          "sum of none",
                                          "values of bf16",
                                          "map",
                                          "larger",
                                          "larger than NaN",
                                          "+ and *",
                                          "multiply_add",
                                          "for_each",
                                          "leader",
                                          "store",
                                          "store_four"};
  static_assert(std::size(names) == static_cast<std::size_t>(check_strips::num_checks));
  strip_inputs const in = make_strip_inputs();
  EXPECT_NE(in.sum, std::accumulate(in.each, in.each + 16, 0.0F))
      << "the numbers are to tell orders apart";
  EXPECT_NE(in.fused, in.third * 3.0F - 1.0F);
  contract_place place(where());
  for (lane_grid const grid : grids()) {
    auto const strips = static_cast<std::size_t>(place.strips(grid));
    contract_array<strip_inputs> inputs(where(), std::vector<strip_inputs>{in});
    contract_array<float> memory(where(), strips * check_strips::memory_of_a_strip);
    contract_array<std::int32_t> wrong(
        where(), std::vector<std::int32_t>(strips * check_strips::num_checks, -1));
    queue q = place.make_queue(1);
    place.run(q, grid, check_strips{inputs.data(), memory.data(), wrong.data()}).value();
    finish(q);
    auto const found = wrong.read();
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i], 0) << names[i % std::size(names)] << " on strip " << i / std::size(names)
                             << " of " << strips;
    auto const stored = memory.read();
    for (std::size_t i = 0; i < stored.size(); ++i)
      if (std::size_t const at = i % check_strips::memory_of_a_strip; at < 16) {
        EXPECT_EQ(stored[i], in.squares[at]);
      }
  }
}

}  // namespace ferry::test
