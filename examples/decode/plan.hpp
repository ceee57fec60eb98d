// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How the prompts are spread over ranks and steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry::decode {

/// Sizes that every rank computes alike from all the prompts: steps are collective, so that each
/// rank must know how many there are.
struct plan {
  int max_sequences = 0;  ///< of one rank, at least 1
  int max_positions = 0;  ///< of one sequence
  int max_tokens = 0;     ///< of one rank in one step
  int prefill_steps = 0;
};

plan make_plan(std::span<std::vector<std::int32_t> const> prompts, int max_new_tokens,
               int num_ranks);

/// The prompts of one rank: i with i mod num_ranks == rank.
std::vector<std::size_t> prompts_of(int rank, int num_ranks, std::size_t num_prompts);

}  // namespace ferry::decode
