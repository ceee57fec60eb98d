// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How ferry-bench's ranks come to be.
#pragma once

#include "run_case.hpp"

#include <functional>

namespace ferry::bench {

/// Ranks that mpirun started; nothing where this process was not started by it.
std::optional<int> ranks_of_mpirun();

/// Runs body(rank) on every rank: this process's one under mpirun, else threads of it.
/// Errors   unsupported under mpirun in a build without MPI; those of ferry::join; the first of
///          the bodies'
result<void> on_all_ranks(settings const& s, std::function<result<void>(bench_rank)> const& body);

}  // namespace ferry::bench
