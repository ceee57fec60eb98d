// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/returning_rows.hpp>

#include "kernels/register_worlds.hpp"

namespace {

using namespace ferry;
using namespace ferry::oracle;

TEST(returning_rows, sum_in_registers_what_found_room) {
  for (auto how : {reduction::per_rank, reduction::per_choice})
    run_in_registers({.hidden = 3848,
                      .combine_wire = wire::bf16,
                      .layout = layout::padded,
                      .reduction = how,
                      .capacity = 2},
                     2);
}

}  // namespace
