// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Windows between ranks that are threads of one process: every rank holds the same mapping.
#pragma once

#include <ferry/group.hpp>

#include <chrono>
#include <cstddef>
#include <vector>

namespace ferry {

/// Collective. All ranks succeed, or all fail. `same_node`: by rank, whether it counts as one that
/// can be mapped.
result<shared_windows> share_between_threads(bootstrap& ranks, std::size_t size,
                                             std::chrono::milliseconds timeout,
                                             std::vector<bool> const& same_node);

}  // namespace ferry
