// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "launcher.hpp"

std::optional<ferry::bootstrap_factory> start_mpi() {
  return std::nullopt;
}
void end_mpi() {}
