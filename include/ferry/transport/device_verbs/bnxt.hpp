// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Queue formats of Broadcom NetXtreme-E NICs (bnxt_re) with variable entries and a message search
/// table. docs/nic_formats.md describes every field.
#pragma once

#include <ferry/transport/device_verbs/byte_order.hpp>
#include <ferry/transport/device_verbs/nic_access.hpp>
#include <ferry/transport/device_verbs/queue_pair.hpp>
#include <ferry/transport/device_verbs/work.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::device_verbs {

/// A send queue entry: three 16-byte slots. All numbers are little-endian.
struct alignas(16) bnxt_entry {
  std::uint32_t head;              ///< slots << 16 | flags << 8 | opcode
  std::uint32_t immediate_or_key;  ///< write: the immediate; atomic: the remote key
  std::uint64_t length_or_remote;  ///< write: bytes (32 bits); atomic: the remote address
  std::uint64_t remote_or_add;     ///< write: the remote address; atomic: what is added
  std::uint64_t key_or_compare;    ///< write: the remote key (32 bits); atomic: unused
  std::uint64_t local_or_inline;   ///< the local address, or the first 8 inline bytes
  std::uint32_t local_key;
  std::uint32_t local_bytes;
};
static_assert(sizeof(bnxt_entry) == 48 && offsetof(bnxt_entry, immediate_or_key) == 4 &&
              offsetof(bnxt_entry, length_or_remote) == 8 &&
              offsetof(bnxt_entry, remote_or_add) == 16 &&
              offsetof(bnxt_entry, key_or_compare) == 24 &&
              offsetof(bnxt_entry, local_or_inline) == 32 &&
              offsetof(bnxt_entry, local_key) == 40 && offsetof(bnxt_entry, local_bytes) == 44);

/// A completion queue entry of a send queue.
struct alignas(16) bnxt_completion {
  std::uint64_t handle;  ///< the queue's, as its maker chose it
  std::uint32_t next;    ///< index of the first entry that is not done; 16 bits
  std::uint32_t unused[3];
  std::uint32_t kind;  ///< flags << 16 | status << 8 | type << 1 | phase
  std::uint32_t unused2;
};
static_assert(sizeof(bnxt_completion) == 32 && offsetof(bnxt_completion, next) == 8 &&
              offsetof(bnxt_completion, kind) == 24);

struct bnxt {
  static constexpr std::uint32_t slots = 3, entry_bytes = 16 * slots, completion_bytes = 32;
  static constexpr std::uint32_t most_entries = 1u << 14;  ///< slot indices have 16 bits
  /// One entry stays free, so that a completion of all is no completion of none.
  FERRY_FN static constexpr std::uint32_t most_outstanding(std::uint32_t num_entries) {
    return num_entries - 1;
  }

  enum opcode : std::uint32_t { op_write = 0x04, op_write_immediate = 0x05, op_fetch_add = 0x0b };
  enum flag : std::uint32_t { signalled = 0x01, fence = 0x04, is_inline = 0x10 };
  enum type : std::uint32_t { type_send = 0x00, type_terminal = 0x0e };
  enum doorbell_type : std::uint32_t { send_queue = 0, completion_queue = 4 };

  /// The first round's phase is 1, so zeroes are nobody's.
  static void clear_completions(queue_pair const& q) {
    auto* const all = reinterpret_cast<bnxt_completion*>(q.completions);
    for (std::uint32_t i = 0; i < q.num_completions; ++i) all[i] = {};
  }

  template <nic_access Access>
  FERRY_FN static void write(Access const&, queue_pair const& q, std::uint32_t index,
                             work const& w) {
    bool const adds = w.what == verb::fetch_add, inlined = w.what == verb::inline_word;
    std::uint32_t const opcode = adds                                   ? op_fetch_add
                                 : w.what == verb::write_with_immediate ? op_write_immediate
                                                                        : op_write;
    std::uint32_t const flags =
        (w.signalled ? signalled : 0u) | (w.fenced ? fence : 0u) | (inlined ? is_inline : 0u);
    bnxt_entry e{};
    e.head = slots << 16 | flags << 8 | opcode;
    e.length_or_remote = adds ? w.remote : inlined ? 8 : w.bytes;
    e.remote_or_add = adds ? w.word : w.remote;
    if (adds)
      e.immediate_or_key = w.remote_key;
    else
      e.key_or_compare = w.remote_key;
    if (w.what == verb::write_with_immediate) e.immediate_or_key = w.immediate;
    if (inlined) {
      e.local_or_inline = w.word;
    } else {
      e.local_or_inline = w.local;
      e.local_key = w.local_key;
      e.local_bytes = adds ? 8 : w.bytes;
    }
    reinterpret_cast<bnxt_entry*>(q.entries)[index & (q.num_entries - 1)] = e;
  }

  /// Packets that an entry takes on the wire; a message of no bytes takes one.
  FERRY_FN static constexpr std::uint32_t packets_of(bnxt_entry const& e, std::uint32_t mtu) {
    auto const bytes = static_cast<std::uint32_t>(e.length_or_remote);
    bool const one = (e.head & 0xff) == op_fetch_add || bytes == 0;
    return one ? 1 : bytes / mtu + (bytes % mtu != 0 ? 1 : 0);
  }

  /// Shows the entries from `first` to before `end` to the NIC: a word per entry in the search
  /// table, then the register. Packet numbers are given out here, where entries come in order.
  template <nic_access Access>
  FERRY_FN static void announce(Access const& a, queue_pair const& q, queue_counters& c,
                                std::uint32_t first, std::uint32_t end) {
    std::uint32_t packet = a.load(&c.packet);
    for (std::uint32_t i = first; i != end; ++i) {
      std::uint32_t const at = i & (q.num_entries - 1);
      bnxt_entry const& e = reinterpret_cast<bnxt_entry const*>(q.entries)[at];
      std::uint32_t const next = (packet + packets_of(e, q.mtu)) & 0xffffff;
      a.store(q.search_table + at,
              std::uint64_t{at * slots} << 48 | std::uint64_t{next} << 24 | std::uint64_t{packet});
      packet = next;
    }
    a.store(&c.packet, packet);
    a.fence();
    a.ring(q.doorbell, doorbell_value(send_queue, q.number, end, q.num_entries, slots));
  }

  /// valid, type, queue number, epoch (which changes with every round) and place within the queue.
  FERRY_FN static constexpr std::uint64_t doorbell_value(std::uint32_t what, std::uint32_t number,
                                                         std::uint32_t index,
                                                         std::uint32_t num_entries,
                                                         std::uint32_t stride) {
    std::uint32_t const place = (index & (num_entries - 1)) * stride;
    std::uint32_t const epoch = index & num_entries ? 1 : 0;
    std::uint32_t const high = what << 28 | 1u << 26 | (number & 0xfffff);
    return std::uint64_t{high} << 32 | epoch << 24 | place;
  }

  template <nic_access Access>
  FERRY_FN static completion read(Access const& a, queue_pair const& q, std::uint32_t position) {
    auto const* const all = reinterpret_cast<bnxt_completion const*>(q.completions);
    bnxt_completion const& c = all[position & (q.num_completions - 1)];
    std::uint32_t const kind = a.load(&c.kind);
    if ((kind & 1) != (position & q.num_completions ? 0u : 1u)) return {};
    completion found{.there = true, .done = c.next, .counted = q.num_entries - 1};
    std::uint32_t const what = kind >> 1 & 0xf, status = kind >> 8 & 0xff;
    if (c.handle != q.handle || (what != type_send && what != type_terminal))
      found.status = nic_status::malformed_completion;
    else if (what == type_terminal)
      found.status = nic_status::flushed;
    else
      found.status = status_of(status);
    return found;
  }

  template <nic_access Access>
  FERRY_FN static void give_back(Access const& a, queue_pair const& q, std::uint32_t position) {
    a.ring(q.completion_doorbell,
           doorbell_value(completion_queue, q.completion_number, position, q.num_completions, 1));
  }

  FERRY_FN static constexpr nic_status status_of(std::uint32_t status) {
    switch (status) {
      case 0x00: return nic_status::ok;
      case 0x01: return nic_status::bad_response;
      case 0x02: return nic_status::local_length;
      case 0x03: return nic_status::local_operation;
      case 0x04: return nic_status::local_protection;
      case 0x06: return nic_status::remote_invalid;
      case 0x07: return nic_status::remote_access;
      case 0x08: return nic_status::remote_operation;
      case 0x09: return nic_status::receiver_not_ready;
      case 0x0a: return nic_status::retry_exceeded;
      case 0x0b: return nic_status::flushed;
      default: return nic_status::other;
    }
  }
};

}  // namespace ferry::device_verbs
