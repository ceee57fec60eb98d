// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Joins a group and writes into every rank's window.
#include <ferry/group.hpp>

#include "launcher.hpp"

#include <cstdio>
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

/// Returns  the program's exit status: 3 when a rank is gone or did not come, as ferry-decode
int run(ferry::bootstrap_factory const& how) {
  auto const group = ferry::join(how);
  auto const line = group ? greet(*group) : ferry::result<std::string>(group.error());
  if (line) {
    std::printf("%s\n", line->c_str());
    return 0;
  }
  auto const& e = line.error();
  std::fprintf(stderr, "%s: %s\n", ferry::to_string(e.code), e.message.c_str());
  bool const peer =
      e.code == ferry::error_code::timeout || e.code == ferry::error_code::unreachable;
  return peer ? 3 : 1;
}

}  // namespace

int main() {
  if (ferry::tcp_environment_is_set()) return run(ferry::tcp_from_environment());
  int status = 0;
  if (auto const ranks = start_mpi()) {
    status = run(*ranks);
  } else {
    // Alone: four threads are four ranks.
    auto const meeting = ferry::threads(4);
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 4; ++rank)
      threads.emplace_back([&meeting, rank] { run(meeting.rank(rank)); });
  }
  end_mpi();
  return status;
}
