// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/credit.hpp>

#include "kernels/three_ranks.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

TEST(credit, is_not_given_in_a_step_of_one_round) {
  three_ranks all;
  for (int r = 0; r < 3; ++r) all.send(r, {2, 4, 3, -1});
  all.receive(1);
  all.ranks.run(1, credit_round{all.ranks.rank(1).frame(), 0});
  for (int d = 0; d < 3; ++d) EXPECT_EQ(all.done(d, 1), 0u);
}

}  // namespace
