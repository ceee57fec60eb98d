// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Makes an exchange send tokens where a placement says that their experts are.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/balance/placement.hpp>
#include <ferry/balance/replicas.hpp>
#include <ferry/base/result.hpp>
#include <ferry/exchange.hpp>

#include <span>

namespace ferry {

/// Whether an exchange has the slots, experts and ranks of a placement, and all of its layers.
/// Errors   invalid_argument naming both numbers, or what `validate` refuses
result<void> check_fits(exchange const& to, placement const& where);

/// Writes the tables of this rank for the layers given, or for all. Ranks write them between the
/// same two steps, when the slots hold their experts.
/// Shapes   loads: of the placement's layers and experts, by which `nearest` knows the least loaded
///          rank, equal on all ranks; null: all alike
/// Errors   those of check_fits, replicas_for and exchange::write_tables; after invalid_argument
///          no table has changed
result<void> apply_placement(exchange& to, placement const& where, replica_choice rule,
                             expert_loads const* loads = nullptr, std::span<int const> layers = {});

}  // namespace ferry
