// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// From the present placement to a better one in few moves.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/balance/place.hpp>
#include <ferry/balance/placement.hpp>

namespace ferry::balance {

/// In whichever layer has most above `most_over_mean`, takes the swap or the replacement of a
/// replica that lowers it most for what it moves, until no rank is above it, nothing helps or
/// `most_moved_bytes` are reached. The present placement where all that gains less than `min_gain`.
placement incremental(placement const& present, expert_loads const& loads,
                      placement_options const& options);

}  // namespace ferry::balance
