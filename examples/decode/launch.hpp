// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How this process finds the other ranks.
#pragma once

#include <ferry/group.hpp>
#include <ferry/result.hpp>

namespace ferry::decode {

/// Joins the ranks that the environment speaks of: those of RANK, WORLD_SIZE, MASTER_ADDR and
/// MASTER_PORT, else those of mpirun, else this process alone. Collective.
/// Errors   those of ferry::join; invalid_argument the environment and mpirun speak of different
///          numbers of ranks; unsupported under mpirun in a build without MPI
result<group> join_ranks(group_options const& options);

/// Ends what `join_ranks` may have begun with MPI. Not for a run that failed: MPI would wait for
/// ranks that are gone.
void end_launch();

}  // namespace ferry::decode
