// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/gathered_rows.hpp>

#include "kernels/register_worlds.hpp"

namespace {

using namespace ferry;
using namespace ferry::oracle;

TEST(gathered_rows, add_several_rows_at_once_in_the_order_of_one_after_the_other) {
  for (auto how : {reduction::per_rank, reduction::per_choice})
    for (int hidden : {8, 3848})
      run_in_registers({.hidden = hidden, .combine_wire = wire::bf16, .reduction = how}, 2);
}

TEST(gathered_rows, lie_by_rank_or_by_choice) {
  step_frame f;
  f.shape.round_tokens = 10;
  f.shape.topk = 4;
  EXPECT_EQ(home_row(f, 3, 7), 37u);
  f.shape.per_choice = true;
  EXPECT_EQ(home_row(f, 3, 7), 31u);
}

}  // namespace
