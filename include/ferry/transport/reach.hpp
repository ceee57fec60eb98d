// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How a peer's window is reached.
#pragma once

#include <cstdint>

namespace ferry {

enum class reach : std::uint8_t {
  self,     ///< this rank's own
  mapped,   ///< loads and stores through a pointer
  network,  ///< puts and signals through a transport
};

}  // namespace ferry
