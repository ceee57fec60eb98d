// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Joins a group and writes into every rank's window.
#include <ferry/group.hpp>

#include "launcher.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Writes this rank's number at its own place in every window, then reads what came into its own.
ferry::result<std::string> greet(ferry::group const& group) {
  auto const me = static_cast<std::size_t>(group.rank());
  FERRY_TRY(auto const shared, group.share_window(static_cast<std::size_t>(group.size())));
  for (int rank = 0; rank < group.size(); ++rank)
    if (shared.reach_of(rank) != ferry::reach::network)
      shared.windows[static_cast<std::size_t>(rank)].data()[me] = std::byte(group.rank() + 1);

  FERRY_CHECK(group.barrier());  // now everybody has written
  std::string line = "rank " + std::to_string(me) + " of " + std::to_string(group.size()) +
                     " was greeted by ranks";
  for (std::byte const greeting : shared.windows[me].bytes())
    if (greeting != std::byte{0}) line += " " + std::to_string(static_cast<int>(greeting) - 1);
  FERRY_CHECK(group.barrier());  // and nobody leaves before all have read
  return line;
}

int complain(ferry::error const& e) {
  std::fprintf(stderr, "%s: %s\n", ferry::to_string(e.code), e.message.c_str());
  bool const peer =
      e.code == ferry::error_code::timeout || e.code == ferry::error_code::unreachable;
  return peer ? 3 : 1;
}

/// Returns  the program's exit status: 3 when a rank is gone or did not come, as ferry-decode
int run(ferry::bootstrap_factory const& how) {
  auto const group = ferry::join(how);
  auto const line = group ? greet(*group) : ferry::result<std::string>(group.error());
  if (!line) return complain(line.error());
  std::printf("%s\n", line->c_str());
  return 0;
}

/// Alone: four threads are four ranks. The largest of their statuses.
int run_threads() {
  auto const meeting = ferry::threads(4);
  std::array<int, 4> statuses{};
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 4; ++rank)
      threads.emplace_back([&meeting, &statuses, rank] {
        statuses[static_cast<std::size_t>(rank)] = run(meeting.rank(rank));
      });
  }
  return *std::max_element(statuses.begin(), statuses.end());
}

/// What the environment says of the number of ranks, by both ways of starting them.
ferry::result<void> check_environment() {
  char const* const size = std::getenv("WORLD_SIZE");
  char const* const started = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (!size || !started || std::string(size) == started) return {};
  return ferry::error{ferry::error_code::invalid_argument,
                      "mpirun started " + std::string(started) +
                          " ranks (OMPI_COMM_WORLD_SIZE), but WORLD_SIZE is " + size +
                          ": unset RANK and WORLD_SIZE, or make them right"};
}

}  // namespace

int main() {
  if (auto const right = check_environment(); !right) return complain(right.error());
  // Half an environment, too: joining says what is missing.
  if (std::getenv("RANK") || std::getenv("WORLD_SIZE")) return run(ferry::tcp_from_environment());
  auto const ranks = start_mpi();
  int const status = ranks ? run(*ranks) : run_threads();
  // After a failure MPI would wait for ranks that are gone.
  if (status == 0) end_mpi();
  return status;
}
