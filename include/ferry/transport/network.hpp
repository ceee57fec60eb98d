// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Delivery where some peers are reached through a network and the others are mapped.
#pragma once

#include <ferry/transport/mapped.hpp>
#include <ferry/transport/outbox.hpp>

namespace ferry {

/// Mapped where there is a window, posted to the outbox where there is none. The same kernels run
/// on it as on mapped_delivery. For CPU teams, which post by themselves.
struct network_delivery {
  mapped_delivery mapped;  ///< windows[rank] is null for a peer on the network
  outbox* out;

  FERRY_FN std::byte* own_flags() const { return mapped.own_flags(); }
  FERRY_FN std::byte* own_rows() const { return mapped.own_rows(); }

  template <team Team>
  FERRY_FN void put(Team const& t, int to, std::size_t offset, std::byte const* from,
                    std::size_t bytes) const {
    if (mapped.windows[to])
      mapped.put(t, to, offset, from, bytes);
    else if (t.leader())
      out->put(to, offset, from, bytes);
  }

  template <team Team, class T>
  FERRY_FN void put_value(Team const& t, int to, std::size_t offset, std::uint32_t lane_offset,
                          T const& value) const {
    if (mapped.windows[to])
      mapped.put_value(t, to, offset, lane_offset, value);
    else
      out->put(to, offset + lane_offset, reinterpret_cast<std::byte const*>(&value), sizeof value);
  }

  /// Each word's own store is a release, and its signal covers every earlier put.
  template <team Team>
  FERRY_FN void release(Team const&) const {}

  template <team Team>
  FERRY_FN void publish(Team const& t, int to, flag kind, std::size_t offset,
                        std::uint64_t word) const {
    if (mapped.windows[to])
      mapped.publish(t, to, kind, offset, word);
    else
      out->signal(to, offset, word, strength::all_earlier);
  }
};

}  // namespace ferry
