// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Delivery to peers whose windows this rank has mapped: plain stores, and one release store a
/// flag.
#pragma once

#include <ferry/exec/cpu/waiter.hpp>
#include <ferry/transport/copy_row.hpp>
#include <ferry/transport/delivery.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ferry {

/// All peers mapped. Copied into kernels by value; the table it points to outlives every launch.
struct mapped_delivery {
  std::byte* const* windows;  ///< [ranks], this rank's own among them
  int rank;
  std::size_t asleep_offset;  ///< of the counters of sleepers, one per writing rank, in each window

  FERRY_FN std::byte* own_flags() const { return windows[rank]; }
  FERRY_FN std::byte* own_rows() const { return windows[rank]; }

  template <team Team>
  FERRY_FN void put(Team const& t, int to, std::size_t offset, std::byte const* from,
                    std::size_t bytes) const {
    copy_row(t, windows[to] + offset, from, bytes);
  }

  template <team Team, class T>
  FERRY_FN void put_value(Team const&, int to, std::size_t offset, std::uint32_t lane_offset,
                          T const& value) const {
    std::memcpy(windows[to] + offset + lane_offset, &value, sizeof value);
  }

  /// Each word's own store is a release.
  template <team Team>
  FERRY_FN void release(Team const&) const {}

  template <team Team>
  FERRY_FN void publish(Team const&, int to, flag, std::size_t offset, std::uint64_t word) const {
    std::byte* const window = windows[to];
    store_and_wake(reinterpret_cast<std::uint64_t*>(window + offset), word,
                   reinterpret_cast<std::uint32_t*>(window + asleep_offset) + rank);
  }
};

}  // namespace ferry
