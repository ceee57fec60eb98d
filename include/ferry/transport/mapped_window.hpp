// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A rank's window as this process sees it.
#pragma once

#include <cstddef>
#include <span>

namespace ferry {

/// Where a rank's window lies in this process, and how to wake who sleeps on its words.
struct mapped_window {
  std::span<std::byte> bytes;
  /// Counters of sleepers, one per writing rank, from this offset (waiter.hpp); no wake-ups when
  /// it is `no_sleepers`.
  std::size_t asleep_offset = no_sleepers;
  static constexpr std::size_t no_sleepers = ~std::size_t{0};
};

}  // namespace ferry
