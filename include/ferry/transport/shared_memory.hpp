// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A transport over mapped windows: puts are copies, signals are release stores.
#pragma once

#include <ferry/transport/transport.hpp>

#include <memory>

namespace ferry {

/// Where a rank's window lies in this process, and how to wake who sleeps on its words.
struct mapped_window {
  std::span<std::byte> bytes;
  /// Counters of sleepers, one per writing rank, from this offset (waiter.hpp); no wake-ups when
  /// it is `no_sleepers`.
  std::size_t asleep_offset = no_sleepers;
  static constexpr std::size_t no_sleepers = ~std::size_t{0};
};

/// Makes the transport of `rank` over windows that are all mapped here. Puts are complete when they
/// return, in order.
std::unique_ptr<transport> make_shared_memory_transport(int rank,
                                                        std::vector<mapped_window> windows);

}  // namespace ferry
