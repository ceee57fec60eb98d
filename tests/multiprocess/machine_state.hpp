// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What a process could leave behind on a machine, for tests that show that ferry does not.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace ferry::test {

/// Descriptors that this process has open.
inline long open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator{});
}

/// Names of shared memory that outlive processes.
inline std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  if (std::error_code none; std::filesystem::is_directory("/dev/shm", none))
    for (auto const& entry : std::filesystem::directory_iterator("/dev/shm"))
      names.insert(entry.path().filename());
  return names;
}

/// Ferry's sockets of the abstract namespace, without the zero (here an @) that they begin with.
inline std::set<std::string> handover_sockets() {
  std::set<std::string> names;
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);)
    if (auto const at = line.find("@ferry-"); at != std::string::npos)
      names.insert(line.substr(at + 1));
  return names;
}

}  // namespace ferry::test
