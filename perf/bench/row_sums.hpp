// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Weighted sums of rows for the programs that ferry is compared with.
#pragma once

#include <ferry/base/types.hpp>

#include <cstddef>

namespace ferry::bench {

/// Rows to be summed, with their weights.
struct weighted_rows {
  std::byte const* const* rows;
  float const* weights;
  int count;
};

/// Writes the weighted sum of rows of `columns` elements of `type` (f32, bf16 or fp16), added in
/// f32 in their order. Runs at the machine's own code level, so that the comparison is with what a
/// compiler makes of such a loop at its best.
void sum_rows(std::byte* to, dtype type, int columns, weighted_rows const& from);

}  // namespace ferry::bench
