// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A send queue and its completion queue as they lie in memory, the counters of who writes it, and
/// what completions say.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry::device_verbs {

/// How an operation ended, the same for all vendors. Each format translates its own codes.
enum class nic_status : std::uint32_t {
  ok,
  local_length,          ///< the NIC could not use a length of the entry
  local_operation,       ///< the NIC could not make sense of the entry
  local_protection,      ///< a local key or address that it may not read or write
  flushed,               ///< an earlier operation had failed
  bad_response,          ///< the peer answered with something else
  remote_invalid,        ///< the peer's NIC could not make sense of the request
  remote_access,         ///< a remote key or address that it may not write
  remote_operation,      ///< the peer's NIC failed
  retry_exceeded,        ///< the peer's NIC does not answer
  receiver_not_ready,    ///< no receive was posted for an immediate
  other,                 ///< a code that this file does not know
  malformed_completion,  ///< a completion that belongs to nothing that was posted
  stuck,                 ///< a team that had reserved entries never published them
};

/// Where a queue pair lies. A plain value that is copied into kernels.
/// Units    indices count entries and run without end; a queue keeps their lower bits
/// Lifetime the memory is its maker's; it outlives every launch that uses it
struct queue_pair {
  std::byte* entries = nullptr;
  std::uint32_t num_entries = 0;             ///< a power of two
  std::uint32_t number = 0;                  ///< the NIC's name for the queue, 24 bits (bnxt: 20)
  std::uint64_t* doorbell = nullptr;         ///< the device register
  std::uint32_t* doorbell_record = nullptr;  ///< mlx5 alone: two words, receive and send
  std::uint64_t* search_table = nullptr;     ///< bnxt alone: a word per entry, for retransmission
  std::uint32_t mtu = 0;                     ///< bnxt alone: bytes that travel in one packet
  std::uint64_t handle = 0;                  ///< bnxt alone: what completions call the queue

  std::byte* completions = nullptr;
  std::uint32_t num_completions = 0;  ///< a power of two, at least num_entries
  std::uint32_t completion_number = 0;
  std::uint64_t* completion_doorbell = nullptr;  ///< bnxt, ionic: the device register
  std::uint32_t* completion_record = nullptr;    ///< mlx5 alone: two words, consumed and armed
};

/// What all teams that use a queue pair share, in memory of this rank's device. Starts as
/// `start_counters` says.
struct queue_counters {
  std::uint32_t credits;    ///< entries that nobody has taken and the NIC does not hold
  std::uint32_t reserved;   ///< entries given to teams so far
  std::uint32_t published;  ///< entries shown to the NIC so far, in order
  std::uint32_t completed;  ///< entries that the NIC is done with
  std::uint32_t consumed;   ///< completions read
  std::uint32_t polling;    ///< 0: nobody reads completions just now
  std::uint32_t packet;     ///< the next packet's sequence number; moves with `published`
  std::uint32_t status;     ///< a nic_status; the first failure stays, and ends all posting
};

/// A completion queue entry after it lost its vendor's form.
struct completion {
  bool there = false;  ///< the NIC has written the entry in this round
  nic_status status = nic_status::ok;
  /// Entries done so far, all together, of which only the bits in `counted` are known.
  std::uint32_t done = 0;
  std::uint32_t counted = 0;
};

}  // namespace ferry::device_verbs
