// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What can be done to the wires of the virtual machine that tests/roce/vm makes.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace ferry::test {

/// How many ports the virtual machine has; 0 on any other machine, whose wires nobody touches.
inline int num_wires() {
  char const* const nics = std::getenv("FERRY_ROCE_NICS");
  return nics ? std::atoi(nics) : 0;
}
inline bool can_disturb_wires() {
  return num_wires() > 0;
}

/// Every packet that leaves a port goes through Linux' netem, as long as this lives.
class disturbed_wires {
 public:
  explicit disturbed_wires(std::string const& how) {
    for (int i = 0; i < num_wires(); ++i)
      if (!run("tc qdisc replace dev re" + std::to_string(i) + " root netem " + how))
        throw std::runtime_error("netem refuses: " + how);
  }
  ~disturbed_wires() {
    for (int i = 0; i < num_wires(); ++i) run("tc qdisc del dev re" + std::to_string(i) + " root");
  }
  disturbed_wires(disturbed_wires const&) = delete;

 private:
  static bool run(std::string const& command) { return std::system(command.c_str()) == 0; }
};

}  // namespace ferry::test
