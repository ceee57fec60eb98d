// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Queue formats of AMD Pensando NICs (ionic), second version of the interface. docs/nic_formats.md
/// describes every field.
#pragma once

#include <ferry/transport/device_verbs/byte_order.hpp>
#include <ferry/transport/device_verbs/nic_access.hpp>
#include <ferry/transport/device_verbs/queue_pair.hpp>
#include <ferry/transport/device_verbs/work.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::device_verbs {

/// A send queue entry.
struct alignas(16) ionic_entry {
  std::uint64_t index;      ///< place within the queue, little-endian
  std::uint32_t head;       ///< opcode, number of data pieces, flags (2 bytes, big)
  std::uint32_t immediate;  ///< big
  std::uint32_t remote_high, remote_low, remote_key;  ///< big
  std::uint32_t length_or_add_high;                   ///< big
  /// write: address (2 words), length and key of the data; inline: the data; atomic: lower half of
  /// what is added, what is compared (2), local key, local address (2). All big but inline data.
  std::uint32_t payload[8];
};
static_assert(sizeof(ionic_entry) == 64 && offsetof(ionic_entry, head) == 8 &&
              offsetof(ionic_entry, immediate) == 12 && offsetof(ionic_entry, remote_high) == 16 &&
              offsetof(ionic_entry, remote_key) == 24 &&
              offsetof(ionic_entry, length_or_add_high) == 28 &&
              offsetof(ionic_entry, payload) == 32);

/// A completion queue entry of a send queue.
struct alignas(16) ionic_completion {
  std::uint32_t unused;
  std::uint32_t messages;  ///< remote operations done so far, 24 bits, big
  std::uint32_t unused2[2];
  std::uint64_t local_index;
  std::uint32_t status;  ///< of an error, big
  std::uint32_t kind;    ///< queue number << 8 | type << 5 | error << 1 | colour, big
};
static_assert(sizeof(ionic_completion) == 32 && offsetof(ionic_completion, messages) == 4 &&
              offsetof(ionic_completion, local_index) == 16 &&
              offsetof(ionic_completion, status) == 24 && offsetof(ionic_completion, kind) == 28);

struct ionic {
  static constexpr std::uint32_t entry_bytes = 64, completion_bytes = 32;
  static constexpr std::uint32_t most_entries = 1u << 15;  ///< a place has 16 bits
  /// A full queue would look empty: the register holds a place only.
  FERRY_FN static constexpr std::uint32_t most_outstanding(std::uint32_t num_entries) {
    return num_entries - 1;
  }

  enum opcode : std::uint32_t { op_write = 0x21, op_write_immediate = 0x61, op_fetch_add = 0x05 };
  enum flag : std::uint32_t { fence = 1, is_inline = 4, signalled = 8, colour = 16 };
  enum type : std::uint32_t { type_messages = 2, type_local = 3 };

  /// The first round's colour is 1, so zeroes are nobody's.
  static void clear_completions(queue_pair const& q) {
    auto* const all = reinterpret_cast<ionic_completion*>(q.completions);
    for (std::uint32_t i = 0; i < q.num_completions; ++i) all[i] = {};
  }

  template <nic_access Access>
  FERRY_FN static void write(Access const& a, queue_pair const& q, std::uint32_t index,
                             work const& w) {
    bool const adds = w.what == verb::fetch_add, inlined = w.what == verb::inline_word;
    std::uint32_t const opcode = adds                                   ? op_fetch_add
                                 : w.what == verb::write_with_immediate ? op_write_immediate
                                                                        : op_write;
    std::uint32_t const flags = (w.fenced ? fence : 0u) | (inlined ? is_inline : 0u) |
                                (w.signalled ? signalled : 0u) |
                                (index & q.num_entries ? 0u : colour);
    std::uint32_t const pieces = adds || (!inlined && w.bytes != 0) ? 1 : 0;
    ionic_entry e{};
    e.index = index & (q.num_entries - 1);
    if (w.what == verb::write_with_immediate) e.immediate = big(w.immediate);
    e.remote_high = big(high_half(w.remote));
    e.remote_low = big(low_half(w.remote));
    e.remote_key = big(w.remote_key);
    if (adds) {
      e.length_or_add_high = big(high_half(w.word));
      e.payload[0] = big(low_half(w.word));
      e.payload[3] = big(w.local_key);
      e.payload[4] = big(high_half(w.local));
      e.payload[5] = big(low_half(w.local));
    } else {
      e.length_or_add_high = big(inlined ? 8u : w.bytes);
      if (inlined) {
        e.payload[0] = low_half(w.word);
        e.payload[1] = high_half(w.word);
      } else if (pieces) {
        e.payload[0] = big(high_half(w.local));
        e.payload[1] = big(low_half(w.local));
        e.payload[2] = big(w.bytes);
        e.payload[3] = big(w.local_key);
      }
    }
    // The NIC may look ahead of the doorbell; the colour tells it whether an entry is new, so the
    // word that holds it comes last. Until then it shows the colour of the round before.
    ionic_entry& at = reinterpret_cast<ionic_entry*>(q.entries)[index & (q.num_entries - 1)];
    at.index = e.index;
    at.immediate = e.immediate;
    at.remote_high = e.remote_high;
    at.remote_low = e.remote_low;
    at.remote_key = e.remote_key;
    at.length_or_add_high = e.length_or_add_high;
    for (int i = 0; i < 8; ++i) at.payload[i] = e.payload[i];
    std::uint32_t const flags_big = (flags & 0xff) << 8 | flags >> 8;
    a.store(&at.head, opcode | pieces << 8 | flags_big << 16);
  }

  template <nic_access Access>
  FERRY_FN static void announce(Access const& a, queue_pair const& q, queue_counters&,
                                std::uint32_t, std::uint32_t end) {
    a.fence();
    a.ring(q.doorbell, doorbell_value(q.number, end, q.num_entries));
  }

  FERRY_FN static constexpr std::uint64_t doorbell_value(std::uint32_t number, std::uint32_t index,
                                                         std::uint32_t num_entries) {
    return std::uint64_t{number & 0xffffff} << 24 | (index & (num_entries - 1));
  }

  template <nic_access Access>
  FERRY_FN static completion read(Access const& a, queue_pair const& q, std::uint32_t position) {
    auto const* const all = reinterpret_cast<ionic_completion const*>(q.completions);
    ionic_completion const& c = all[position & (q.num_completions - 1)];
    std::uint32_t const kind = big(a.load(&c.kind));
    if ((kind & 1) != (position & q.num_completions ? 0u : 1u)) return {};
    completion found{.there = true, .done = big(c.messages), .counted = 0xffffff};
    std::uint32_t const what = kind >> 5 & 7;
    bool const failed = kind & 2;
    if (kind >> 8 != q.number || (what != type_messages && !(what == type_local && failed)))
      found.status = nic_status::malformed_completion;
    else if (failed)
      found.status = status_of(big(c.status));
    return found;
  }

  template <nic_access Access>
  FERRY_FN static void give_back(Access const& a, queue_pair const& q, std::uint32_t position) {
    a.ring(q.completion_doorbell, doorbell_value(q.completion_number, position, q.num_completions));
  }

  FERRY_FN static constexpr nic_status status_of(std::uint32_t status) {
    switch (status) {
      case 1: return nic_status::local_length;
      case 2: return nic_status::local_operation;
      case 3:
      case 7: return nic_status::local_protection;
      case 4: return nic_status::flushed;
      case 6: return nic_status::bad_response;
      case 8: return nic_status::remote_invalid;
      case 9: return nic_status::remote_access;
      case 10: return nic_status::remote_operation;
      case 11: return nic_status::retry_exceeded;
      case 12: return nic_status::receiver_not_ready;
      default: return nic_status::other;
    }
  }
};

}  // namespace ferry::device_verbs
