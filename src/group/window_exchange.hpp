// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Windows between ranks that are processes: each maps the others' memory where that is possible.
#pragma once

#include <ferry/group.hpp>

#include <chrono>
#include <cstddef>
#include <vector>

namespace ferry {

/// Collective. All ranks succeed, or all fail.
///
/// Every rank hands the descriptor of its memfd to its peers over a socket of the abstract
/// namespace: no file system, no right to trace, and nothing that outlives the process. The socket
/// has a name that nobody can guess; a peer must be of the same user (or either be root), as the
/// kernel tells, and bring a secret that only the group's ranks know.
/// `same_node`: by rank, whether it counts as one that could be mapped at all.
result<shared_windows> share_between_processes(bootstrap& ranks, std::size_t size,
                                               std::chrono::milliseconds timeout,
                                               std::vector<bool> const& same_node);

}  // namespace ferry
