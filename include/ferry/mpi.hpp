// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Joining a group from a program that was started by mpirun. Needs a ferry built with MPI.
#pragma once

#include <ferry/group.hpp>

#include <mpi.h>

namespace ferry {

/// Ranks of an MPI communicator. MPI carries one address; from then on the ranks keep their own
/// connections, so that a rank's end is seen even where MPI would not tell.
/// Order    the communicator's ranks. `join` is collective over the communicator, and is called on
///          the thread that initialised MPI, or on any with MPI_THREAD_SERIALIZED and more
/// Lifetime the communicator is used within `join` only; the group outlives MPI_Finalize. It can go
///          on without a rank (group::without) where mpirun lets the other processes live
/// Errors   (from join) as ferry::tcp; invalid_state MPI is not initialised, is finalised, or this
/// is
///          not its thread; invalid_argument no communicator, or one between two groups; transport
///          MPI refused
/// Example  examples/01_hello_group
bootstrap_factory mpi(MPI_Comm communicator);

}  // namespace ferry
