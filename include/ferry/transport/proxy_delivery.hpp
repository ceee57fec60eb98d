// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Delivery by kernels through a host thread: works with every NIC, and every transport.
#pragma once

#include <ferry/transport/copy_row.hpp>
#include <ferry/transport/delivery.hpp>
#include <ferry/transport/proxy_ring.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

/// Mapped where `Mapped` has the peer's window, asked of the proxy where not. Requests are posted
/// in the order of their numbers, so a word covers whatever its block put before.
template <device_verbs::nic_access Access, class Mapped, device_verbs::patience Patience>
struct proxy_delivery {
  Mapped mapped;  ///< windows[rank] is null for a peer on the network
  proxy_ring ring;
  Patience how_long;  ///< of one call, for the ring to have room
  [[no_unique_address]] Access access;

  FERRY_FN std::byte* own_flags() const { return mapped.own_flags(); }
  FERRY_FN std::byte* own_rows() const { return mapped.own_rows(); }

  template <team Team>
  FERRY_FN void put(Team const& t, int to, std::size_t offset, std::byte const* from,
                    std::size_t bytes) const {
    if (mapped.windows[to]) {
      mapped.put(t, to, offset, from, bytes);
      return;
    }
    for (std::size_t done = 0; done < bytes; done += ring.put_bytes) {
      std::size_t const left = bytes - done, part = left < ring.put_bytes ? left : ring.put_bytes;
      if (!put_part(t, to, offset + done, from + done, part)) return;
    }
  }

  /// A request for each lane's value: rows travel better by put().
  template <team Team, class T>
  FERRY_FN void put_value(Team const& t, int to, std::size_t offset, std::uint32_t lane_offset,
                          T const& value) const {
    if (mapped.windows[to]) {
      mapped.put_value(t, to, offset, lane_offset, value);
      return;
    }
    Patience patience_left = how_long;
    std::uint32_t number = 0;
    if (!ring.take(access, patience_left, number)) return;
    __builtin_memcpy(ring.place_of(number), &value, sizeof value);
    ask_for_put(number, to, offset + lane_offset, sizeof value);
  }

  /// A signal covers all that was asked for before it.
  template <team Team>
  FERRY_FN void release(Team const&) const {}

  template <team Team>
  FERRY_FN void publish(Team const& t, int to, flag kind, std::size_t offset,
                        std::uint64_t word) const {
    if (mapped.windows[to]) {
      mapped.publish(t, to, kind, offset, word);
      return;
    }
    Patience patience_left = how_long;
    std::uint32_t number = 0;
    if (!ring.take(access, patience_left, number)) return;
    proxy_request& r = ring.at(number);
    r.kind = proxy_request::signal;
    r.rank = to;
    r.bytes = 0;
    r.offset = offset;
    r.word = word;
    ring.mark(access, number);
  }

 private:
  template <team Team>
  FERRY_FN bool put_part(Team const& t, int to, std::size_t offset, std::byte const* from,
                         std::size_t bytes) const {
    Patience patience_left = how_long;
    std::uint32_t number = 0;
    bool const right = !t.leader() || ring.take(access, patience_left, number);
    if (t.any(!right)) return false;
    number = t.broadcast(number, 0);
    copy_row(t, ring.place_of(number), from, bytes);
    t.drain();
    t.sync();
    if (!t.leader()) return true;
    ask_for_put(number, to, offset, bytes);
    return true;
  }

  FERRY_FN void ask_for_put(std::uint32_t number, int to, std::size_t offset,
                            std::size_t bytes) const {
    proxy_request& r = ring.at(number);
    r.kind = proxy_request::put;
    r.rank = to;
    r.bytes = static_cast<std::uint32_t>(bytes);
    r.offset = offset;
    access.fence();
    ring.mark(access, number);
  }
};

}  // namespace ferry
