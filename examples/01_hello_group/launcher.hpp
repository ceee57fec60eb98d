// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Whether mpirun started this program, and how to join the ranks that it started.
#pragma once

#include <ferry/group.hpp>

#include <optional>

/// Starts MPI. Nothing when the program stands alone, or was built without MPI.
std::optional<ferry::bootstrap_factory> start_mpi();
void end_mpi();
