// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The two halves of apply_placement, for placements that have lost experts as well.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/balance/placement.hpp>
#include <ferry/balance/replicas.hpp>
#include <ferry/exchange.hpp>

#include <span>

namespace ferry {

/// Whether an exchange has as many layers, experts, slots and ranks.
result<void> check_sizes(exchange const& to, placement const& where);

/// Writes the tables of the layers given, or of all; see apply_placement.
result<void> write_placement(exchange& to, placement const& where, replica_choice rule,
                             expert_loads const* loads, std::span<int const> layers);

}  // namespace ferry
