// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Plays a mutant of the protocol until it is found out.
#pragma once

#include "protocol/stepped_exchange.hpp"

#include <gtest/gtest.h>

#include <iostream>
#include <set>

namespace ferry::protocol_test {

// A mutant found out through its own late stores to itself would prove less.
inline constexpr run_shape small{.steps = 24, .release_some = false, .slow_self = false};
inline constexpr int most_runs = 400;

// Plays seeds until the mutant is found out, which must happen in the expected way.
template <class Mutant>
void expect_found(run_shape shape, std::set<outcome> const& expected) {
  for (int seed = 1; seed <= most_runs; ++seed) {
    Mutant mutant;
    verdict const v = play(shape, mutant, static_cast<std::uint64_t>(seed));
    if (v.what == outcome::right) continue;
    EXPECT_TRUE(expected.contains(v.what)) << to_string(v.what) << ", " << v.text;
    std::cout << to_string(v.what) << ", " << v.text << "\n";
    Mutant again;
    EXPECT_EQ(play(shape, again, static_cast<std::uint64_t>(seed)).text, v.text)
        << "the seed does not replay the run";
    return;
  }
  ADD_FAILURE() << "not found out in " << most_runs << " runs";
}

// Only wrong data counts, not the check of R5.
inline run_shape only_data(run_shape shape) {
  shape.check_ahead = false;
  return shape;
}

}  // namespace ferry::protocol_test
