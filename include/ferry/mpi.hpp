// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Joining a group from a program that was started by mpirun. Needs a ferry built with MPI.
#pragma once

#include <ferry/group.hpp>

#include <mpi.h>

namespace ferry {

/// Ranks of an MPI communicator. MPI carries one address; from then on the ranks keep their own
/// connections, so that a rank's end is seen even where MPI would not tell.
/// Order    the communicator's ranks; MPI must be initialised, with at least MPI_THREAD_FUNNELED,
///          and `join` be called on the thread that initialised it
bootstrap_factory mpi(MPI_Comm communicator);

}  // namespace ferry
