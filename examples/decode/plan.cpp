// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "plan.hpp"

#include <algorithm>

namespace ferry::decode {
namespace {

/// Prompt tokens that one step of a rank takes. Windows and activations grow with it; products are
/// efficient from far fewer.
constexpr std::size_t prefill_tokens = 128;

}  // namespace

plan make_plan(std::span<std::vector<std::int32_t> const> prompts, int max_new_tokens,
               int num_ranks) {
  std::vector<std::size_t> tokens(static_cast<std::size_t>(num_ranks), 0);
  std::size_t longest = 0;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    tokens[i % tokens.size()] += prompts[i].size();
    longest = std::max(longest, prompts[i].size());
  }
  auto sequences = std::max<std::size_t>((prompts.size() + tokens.size() - 1) / tokens.size(), 1);
  auto most = *std::max_element(tokens.begin(), tokens.end());
  auto step = std::max(sequences, std::min(most, prefill_tokens));
  plan p;
  p.max_sequences = static_cast<int>(sequences);
  p.max_positions = static_cast<int>(longest) + max_new_tokens - 1;  // the last token is not fed
  p.max_tokens = static_cast<int>(step);
  p.prefill_steps = static_cast<int>((most + step - 1) / step);
  return p;
}

std::vector<std::size_t> prompts_of(int rank, int num_ranks, std::size_t num_prompts) {
  std::vector<std::size_t> mine;
  for (auto i = static_cast<std::size_t>(rank); i < num_prompts;
       i += static_cast<std::size_t>(num_ranks))
    mine.push_back(i);
  return mine;
}

}  // namespace ferry::decode
