// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Runs the policies and measures what they give.
#pragma once

#include "options.hpp"

#include <ferry/placement.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ferry::place_tool {

/// One placement and what is known of it.
struct outcome {
  std::string name;  ///< the policy
  placement where;
  rank_balance balance;
  std::optional<token_distance> distance;  ///< with choices
  std::optional<double> wire_bytes;
  std::vector<std::optional<double>> step_imbalance;  ///< one a step size; with choices
  std::size_t moved_bytes = 0;
  double seconds = 0;
  bool valid = true;  ///< false for an answer of EPLB that holds an expert twice on a rank
};

/// What was asked, and all answers.
struct comparison {
  expert_loads loads;
  std::optional<routing_trace> trace;
  int topk = 0;
  std::vector<std::int64_t> tokens_per_step;
  std::vector<double> floor;  ///< one a step size
  double bound =
      1;  ///< mean over layers: the least max/mean of a permutation, by the bound of place.hpp
  outcome present;
  std::vector<outcome> outcomes;
  std::vector<std::string> left_out;  ///< policies that do not apply, with the reason
};

/// Errors   what reading and placing give; a policy that was asked for and does not apply is one
/// too
result<comparison> solve(options const& o);

}  // namespace ferry::place_tool
