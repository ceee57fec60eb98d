// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Whether records take one hop or two.
#pragma once

#include "exchange/exchange_state.hpp"
#include "exchange/node_paths.hpp"

namespace ferry {

/// Whether two hops make a full step shorter, by the cost model of docs/decisions/0007-two-hops.md:
/// what they save on the network against what they cost within the nodes.
bool two_hops_pay(exchange_shape const& shape, node_map const& nodes);

/// What is chosen: whether it is possible, and wanted or left open and worth it.
bool take_two_hops(hops wanted, exchange_shape const& shape, node_map const& nodes, bool on_device);

/// Finds the nodes, chooses, and lays the window out anew where records take two hops. Collective.
/// Errors   unsupported two hops on other devices than CPUs; those of find_nodes and window_of
result<void> choose_hops(exchange_core& core);

}  // namespace ferry
