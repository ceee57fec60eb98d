// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The bytes by which ranks reach each other's windows through NICs.
#pragma once

#include <ferry/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

/// A window as a peer's NIC knows it.
struct peer_window {
  std::uint64_t address = 0;  ///< in its owner's address space
  std::uint64_t bytes = 0;
  std::uint32_t key = 0;
};

struct peer_address {
  peer_window window;
  std::vector<std::byte> endpoint;  ///< of the queue that belongs to the asking rank
};

/// One block for all peers: the window, then an endpoint per rank, each with its length before it.
std::vector<std::byte> pack_address(peer_window const& window,
                                    std::vector<std::vector<std::byte>> const& endpoints);

/// What `rank`'s address says to rank `mine`.
/// Errors   malformed_input the length does not fit what it holds, or it has no endpoint for `mine`
result<peer_address> unpack_address(int rank, std::span<std::byte const> address, int mine);

}  // namespace ferry
