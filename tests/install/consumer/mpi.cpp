// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Needs the header and the library of ferry::mpi; the program is never started by mpirun.
#include <ferry/mpi.hpp>

ferry::bootstrap_factory from_mpi() {
  return ferry::mpi(MPI_COMM_WORLD);
}
