// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Delivery by kernels that write a NIC's queues themselves.
#pragma once

#include <ferry/transport/copy_row.hpp>
#include <ferry/transport/delivery.hpp>
#include <ferry/transport/device_verbs/send_queue.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::device_verbs {

/// A peer as a kernel reaches it: the queue, the window behind it, and staging memory that the NIC
/// knows, a place of `put_bytes` for each entry of the queue. What lies in an entry's place is free
/// when the entry is.
template <class Format, nic_access Access>
struct direct_reach {
  send_queue<Format, Access> queue;
  std::uint64_t window = 0;  ///< its address in the peer's process
  std::uint32_t window_key = 0;
  std::uint32_t staging_key = 0;
  std::byte* staging = nullptr;

  FERRY_FN std::byte* place_of(std::uint32_t index, std::size_t put_bytes) const {
    return staging + (index & (queue.pair.num_entries - 1)) * put_bytes;
  }
};

/// Mapped where `Mapped` has the peer's window, written to its queue where not. A failed queue
/// keeps its status, and nothing is posted to it any more; whoever waits for the words misses them.
/// Lifetime the table of peers outlives every launch
template <class Format, nic_access Access, class Mapped, patience Patience>
struct direct_delivery {
  Mapped mapped;                              ///< windows[rank] is null for a peer on the network
  direct_reach<Format, Access> const* peers;  ///< [ranks]
  std::size_t put_bytes;
  Patience how_long;  ///< of one call, for the NIC to make room

  FERRY_FN std::byte* own_flags() const { return mapped.own_flags(); }
  FERRY_FN std::byte* own_rows() const { return mapped.own_rows(); }

  /// Every lane copies to the staging place of the entry; the leader posts it.
  template <team Team>
  FERRY_FN void put(Team const& t, int to, std::size_t offset, std::byte const* from,
                    std::size_t bytes) const {
    if (mapped.windows[to]) {
      mapped.put(t, to, offset, from, bytes);
      return;
    }
    for (std::size_t done = 0; done < bytes; done += put_bytes) {
      std::size_t const left = bytes - done, part = left < put_bytes ? left : put_bytes;
      if (!put_part(t, peers[to], offset + done, from + done, part)) return;
    }
  }

  /// An entry for each lane's value: rows travel better by put().
  template <team Team, class T>
  FERRY_FN void put_value(Team const& t, int to, std::size_t offset, std::uint32_t lane_offset,
                          T const& value) const {
    if (mapped.windows[to]) {
      mapped.put_value(t, to, offset, lane_offset, value);
      return;
    }
    direct_reach<Format, Access> const& p = peers[to];
    Patience patience_left = how_long;
    std::uint32_t index = 0;
    if (!p.queue.reserve(1, index, patience_left)) return;
    __builtin_memcpy(p.place_of(index, put_bytes), &value, sizeof value);
    p.queue.write(index, write_of(p, index, offset + lane_offset, sizeof value));
    p.queue.publish(index, 1, patience_left);
  }

  /// Each word travels behind an entry that covers what was written before it.
  template <team Team>
  FERRY_FN void release(Team const&) const {}

  /// Two entries: an addition of nothing, which the peer's NIC carries out after every earlier
  /// write of the queue, and the word, which starts when that has come back.
  template <team Team>
  FERRY_FN void publish(Team const& t, int to, flag kind, std::size_t offset,
                        std::uint64_t word) const {
    if (mapped.windows[to]) {
      mapped.publish(t, to, kind, offset, word);
      return;
    }
    direct_reach<Format, Access> const& p = peers[to];
    Patience patience_left = how_long;
    std::uint32_t first = 0;
    if (!p.queue.reserve(2, first, patience_left)) return;
    work w{.what = verb::fetch_add,
           .signalled = false,
           .remote_key = p.window_key,
           .remote = p.window + offset,
           .local = reinterpret_cast<std::uint64_t>(p.place_of(first, put_bytes)),
           .local_key = p.staging_key};
    p.queue.write(first, w);
    w.what = verb::inline_word;
    w.fenced = w.signalled = true;
    w.word = word;
    p.queue.write(first + 1, w);
    p.queue.publish(first, 2, patience_left);
  }

 private:
  template <team Team>
  FERRY_FN bool put_part(Team const& t, direct_reach<Format, Access> const& p, std::size_t offset,
                         std::byte const* from, std::size_t bytes) const {
    Patience patience_left = how_long;
    std::uint32_t index = 0;
    bool right = !t.leader() || p.queue.reserve(1, index, patience_left);
    if (t.any(!right)) return false;
    index = t.broadcast(index, 0);
    std::byte* const place = p.place_of(index, put_bytes);
    copy_row(t, place, from, bytes);
    t.drain();
    t.sync();
    if (t.leader()) {
      p.queue.write(index, write_of(p, index, offset, bytes));
      right = p.queue.publish(index, 1, patience_left);
    }
    return !t.any(!right);
  }

  // Writes what lies in the staging place of the entry.
  FERRY_FN work write_of(direct_reach<Format, Access> const& p, std::uint32_t index,
                         std::size_t offset, std::size_t bytes) const {
    return {.what = verb::write,
            .remote_key = p.window_key,
            .remote = p.window + offset,
            .local = reinterpret_cast<std::uint64_t>(p.place_of(index, put_bytes)),
            .local_key = p.staging_key,
            .bytes = static_cast<std::uint32_t>(bytes)};
  }
};

}  // namespace ferry::device_verbs
