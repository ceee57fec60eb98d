// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "launch.hpp"

#ifdef FERRY_DECODE_MPI
#include <ferry/mpi.hpp>
#endif

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace ferry::decode {
namespace {

/// Whether the environment names ranks; whether it names them fully is for `join` to say.
bool environment_names_ranks() {
  return std::getenv("RANK") != nullptr || std::getenv("WORLD_SIZE") != nullptr;
}

bool started_by_mpirun() {
  for (auto const* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name)) return true;
  return false;
}

}  // namespace

#ifdef FERRY_DECODE_MPI

namespace {

result<group> join_mpi(group_options const& options) {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
    return error{error_code::transport, "MPI_Init_thread failed"};
  return join(mpi(MPI_COMM_WORLD), options);
}

}  // namespace

void end_launch() {
  int begun = 0;
  if (MPI_Initialized(&begun) == MPI_SUCCESS && begun) MPI_Finalize();
}

#else

namespace {

result<group> join_mpi(group_options const&) {
  return error{error_code::unsupported,
               "started by mpirun, but this build has no MPI; set RANK, WORLD_SIZE, MASTER_ADDR "
               "and MASTER_PORT instead"};
}

}  // namespace

void end_launch() {}

#endif

result<group> join_ranks(group_options const& options) {
  auto const* of_environment = std::getenv("WORLD_SIZE");
  auto const* of_mpirun = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (of_environment && of_mpirun && std::string_view(of_environment) != of_mpirun)
    return error{
        error_code::invalid_argument,
        fmt::format("mpirun started {} ranks (OMPI_COMM_WORLD_SIZE), but WORLD_SIZE is {}: "
                    "unset RANK and WORLD_SIZE, or make them right",
                    of_mpirun, of_environment)};
  if (environment_names_ranks()) return join(tcp_from_environment(), options);
  if (started_by_mpirun()) return join_mpi(options);
  return join(threads(1).rank(0), options);
}

}  // namespace ferry::decode
