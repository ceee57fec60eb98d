// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Worlds that send, return and gather in the forms of registers, and the same run on lanes.
#pragma once

#include "kernels/all_ranks.hpp"

#include <gtest/gtest.h>

namespace ferry::oracle {

/// A small world. Rows have several parts where they are longer than what lanes hold at once: 3,584
/// bytes on 32 of them, 7,168 on 64.
inline world world_in_registers(std::uint64_t seed, exchange_options changed) {
  world w;
  dice from(seed);
  w.ranks = pick(from, 2, 4);
  w.options = changed;
  w.options.num_experts = pick(from, w.ranks, 20);
  w.options.topk = pick_one(from, {1, 2, 3, 8});
  w.options.max_tokens = pick(from, 1, 6);
  w.options.chunk_tokens = pick_one(from, {1, 2, 4});
  w.options.expert_rows = dtype::bf16;
  w.options.output = dtype::bf16;
  w.options.num_microbatches = 1;
  if (w.options.wire == wire::opaque) {
    w.options.opaque_row_bytes = 16 * static_cast<std::size_t>(pick(from, 1, 600));
    w.options.opaque_scale_bytes = 4 * static_cast<std::size_t>(pick(from, 0, 100));
  }
  for (int r = 0; r < w.ranks; ++r) w.fnuz.push_back(one_in(from, 2));
  for (int i = 0; i < 2; ++i) w.steps.push_back(random_step(w, from));
  return w;
}

/// Runs `worlds` of them on teams of 32 and of 64 lanes, against the oracle.
inline void run_in_registers(exchange_options const& options, int worlds) {
  for (int lanes : {32, 64})
    for (int i = 0; i < worlds; ++i) {
      auto const seed = static_cast<std::uint64_t>(7 * i + lanes);
      world const w = world_in_registers(seed, options);
      lane_grid const grid{.blocks = 1 + i % 2, .teams = 1 + i / 2 % 2};
      all_ranks ranks(w, lanes, grid);
      complaints wrong;
      for (step const& s : w.steps) ranks.run_step(w, s, wrong);
      ASSERT_TRUE(wrong.none()) << lanes << " lanes, seed " << seed << ", " << grid.blocks
                                << " blocks of " << grid.teams << ": " << describe(w) << "\n"
                                << wrong.text();
    }
}

}  // namespace ferry::oracle
