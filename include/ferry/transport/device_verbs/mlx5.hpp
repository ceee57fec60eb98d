// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Queue formats of NVIDIA ConnectX NICs (mlx5). docs/nic_formats.md describes every field.
#pragma once

#include <ferry/transport/device_verbs/byte_order.hpp>
#include <ferry/transport/device_verbs/nic_access.hpp>
#include <ferry/transport/device_verbs/queue_pair.hpp>
#include <ferry/transport/device_verbs/work.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry::device_verbs {

/// A send queue entry: one 64-byte block, in 16-byte units.
struct alignas(16) mlx5_entry {
  std::uint32_t opcode_and_index;  ///< modifier << 24 | index << 8 | opcode, big
  std::uint32_t queue_and_units;   ///< queue number << 8 | 16-byte units in use, big
  std::uint32_t control;           ///< signature, stream (2 bytes), fence and completion mode
  std::uint32_t immediate;         ///< big
  std::uint64_t remote;            ///< big
  std::uint32_t remote_key;        ///< big
  std::uint32_t reserved;
  std::uint32_t payload[8];  ///< data, inline data, or an atomic's operands and its data
};
static_assert(sizeof(mlx5_entry) == 64 && offsetof(mlx5_entry, queue_and_units) == 4 &&
              offsetof(mlx5_entry, control) == 8 && offsetof(mlx5_entry, immediate) == 12 &&
              offsetof(mlx5_entry, remote) == 16 && offsetof(mlx5_entry, remote_key) == 24 &&
              offsetof(mlx5_entry, payload) == 32);

/// A completion queue entry.
struct alignas(16) mlx5_completion {
  std::uint32_t unused[13];
  std::uint32_t error;             ///< byte 54 the vendor's syndrome, 55 the syndrome
  std::uint32_t opcode_and_queue;  ///< the entry's opcode << 24 | queue number, big
  std::uint32_t index_and_owner;   ///< index of the entry (2 bytes, big), signature, kind and owner
};
static_assert(sizeof(mlx5_completion) == 64 && offsetof(mlx5_completion, error) == 52 &&
              offsetof(mlx5_completion, opcode_and_queue) == 56 &&
              offsetof(mlx5_completion, index_and_owner) == 60);

struct mlx5 {
  static constexpr std::uint32_t entry_bytes = 64, completion_bytes = 64;
  static constexpr std::uint32_t most_entries = 1u << 15;  ///< an index has 16 bits
  FERRY_FN static constexpr std::uint32_t most_outstanding(std::uint32_t num_entries) {
    return num_entries;
  }

  enum opcode : std::uint32_t { op_write = 0x08, op_write_immediate = 0x09, op_fetch_add = 0x12 };
  enum kind : std::uint32_t { request = 0, request_error = 13, response_error = 14, invalid = 15 };
  static constexpr std::uint32_t complete = 0x08, fence = 0x80, is_inline = 0x80000000;

  /// The state in which an unused completion entry starts: nobody's.
  static void clear_completions(queue_pair const& q) {
    auto* const all = reinterpret_cast<mlx5_completion*>(q.completions);
    for (std::uint32_t i = 0; i < q.num_completions; ++i) {
      all[i] = {};
      all[i].index_and_owner = invalid << 28;
    }
  }

  template <nic_access Access>
  FERRY_FN static void write(Access const&, queue_pair const& q, std::uint32_t index,
                             work const& w) {
    bool const adds = w.what == verb::fetch_add, inlined = w.what == verb::inline_word;
    // A data segment of no bytes would mean 2^31: nothing to send has no segment.
    bool const has_data = inlined || adds || w.bytes != 0;
    std::uint32_t const units = adds ? 4 : has_data ? 3 : 2;
    std::uint32_t const opcode = adds                                   ? op_fetch_add
                                 : w.what == verb::write_with_immediate ? op_write_immediate
                                                                        : op_write;
    mlx5_entry e{};
    e.opcode_and_index = big(std::uint32_t{(index & 0xffff) << 8 | opcode});
    e.queue_and_units = big(q.number << 8 | units);
    e.control = ((w.signalled ? complete : 0u) | (w.fenced ? fence : 0u)) << 24;
    if (w.what == verb::write_with_immediate) e.immediate = big(w.immediate);
    e.remote = big(w.remote);
    e.remote_key = big(w.remote_key);
    if (inlined) {
      e.payload[0] = big(std::uint32_t{is_inline | 8});
      e.payload[1] = low_half(w.word);
      e.payload[2] = high_half(w.word);
    } else if (has_data) {
      std::uint32_t const at = adds ? 4 : 0;
      if (adds) {
        e.payload[0] = big(high_half(w.word));
        e.payload[1] = big(low_half(w.word));
      }
      e.payload[at] = big(adds ? 8u : w.bytes);
      e.payload[at + 1] = big(w.local_key);
      e.payload[at + 2] = big(high_half(w.local));
      e.payload[at + 3] = big(low_half(w.local));
    }
    reinterpret_cast<mlx5_entry*>(q.entries)[index & (q.num_entries - 1)] = e;
  }

  /// Shows the entries before `end` to the NIC: the record first, then the register, which takes
  /// the first 8 bytes of the last entry.
  template <nic_access Access>
  FERRY_FN static void announce(Access const& a, queue_pair const& q, queue_counters&,
                                std::uint32_t, std::uint32_t end) {
    a.store(q.doorbell_record + 1, big(std::uint32_t{end & 0xffff}));
    mlx5_entry const& last =
        reinterpret_cast<mlx5_entry const*>(q.entries)[(end - 1) & (q.num_entries - 1)];
    std::uint64_t const first_bytes = last.opcode_and_index | std::uint64_t{last.queue_and_units}
                                                                  << 32;
    a.fence();
    a.ring(q.doorbell, first_bytes);
  }

  template <nic_access Access>
  FERRY_FN static completion read(Access const& a, queue_pair const& q, std::uint32_t position) {
    auto const* const all = reinterpret_cast<mlx5_completion const*>(q.completions);
    mlx5_completion const& c = all[position & (q.num_completions - 1)];
    std::uint32_t const tail = a.load(&c.index_and_owner);
    std::uint32_t const owner = tail >> 24 & 1, what = tail >> 28;
    if (what == invalid || owner != (position & q.num_completions ? 1u : 0u)) return {};
    completion found{.there = true, .counted = 0xffff};
    found.done = (big(tail) >> 16) + 1;
    if ((big(c.opcode_and_queue) & 0xffffff) != q.number)
      found.status = nic_status::malformed_completion;
    else if (what == request_error || what == response_error)
      found.status = status_of(c.error >> 24);
    else if (what != request)
      found.status = nic_status::malformed_completion;
    return found;
  }

  /// Tells the NIC that the completions before `position` may be overwritten.
  template <nic_access Access>
  FERRY_FN static void give_back(Access const& a, queue_pair const& q, std::uint32_t position) {
    a.store(q.completion_record, big(std::uint32_t{position & 0xffffff}));
  }

  FERRY_FN static constexpr nic_status status_of(std::uint32_t syndrome) {
    switch (syndrome) {
      case 0x01: return nic_status::local_length;
      case 0x02: return nic_status::local_operation;
      case 0x04:
      case 0x11: return nic_status::local_protection;
      case 0x05: return nic_status::flushed;
      case 0x10: return nic_status::bad_response;
      case 0x12: return nic_status::remote_invalid;
      case 0x13: return nic_status::remote_access;
      case 0x14: return nic_status::remote_operation;
      case 0x15: return nic_status::retry_exceeded;
      case 0x16: return nic_status::receiver_not_ready;
      default: return nic_status::other;
    }
  }
};

}  // namespace ferry::device_verbs
