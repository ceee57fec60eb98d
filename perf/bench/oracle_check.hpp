// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A case is right before it is fast.
#pragma once

#include "workload.hpp"

namespace ferry::bench {

/// Runs one whole step in each slot of the exchange, with payloads and experts that show any row
/// that is lost, doubled or swapped, and compares all that this rank sees with the oracle of the
/// tests. `ranks_per_node`: of the nodes that the ranks play, or 0. Collective.
/// Errors   internal what differs, of the first rank that saw something
result<void> check_by_oracle(group const& ranks, workload const& work, exchange& ep,
                             std::uint64_t seed, int ranks_per_node = 0);

}  // namespace ferry::bench
