// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/mpi.hpp>

#include "launcher.hpp"

std::optional<ferry::bootstrap_factory> start_mpi() {
  int level = 0;
  int size = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return std::nullopt;
  return ferry::mpi(MPI_COMM_WORLD);
}

void end_mpi() {
  MPI_Finalize();
}
