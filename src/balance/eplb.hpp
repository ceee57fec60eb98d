// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What DeepSeek's expert-parallel load balancer (EPLB) answers to a question, for comparison.
#pragma once

#include <ferry/balance/place.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace ferry::balance {

/// EPLB's own conditions.
/// Errors   invalid_argument what does not divide
result<void> check_eplb(int num_experts, placement_options const& options);

/// The expert in each slot of one layer. With groups that divide over the nodes: groups to nodes,
/// then replicas within a node, then replicas to its ranks; else the last two over all ranks. Both
/// deals go heaviest first to the least loaded with room; loads are floats, as there, and ties go
/// to the lower number.
std::vector<std::int32_t> eplb_layer(std::span<double const> loads,
                                     placement_options const& options);

}  // namespace ferry::balance
