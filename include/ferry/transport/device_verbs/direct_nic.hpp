// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The control path of a NIC whose queues are written directly: what makes queues and keys.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/transport/device_verbs/formats.hpp>
#include <ferry/transport/device_verbs/queue_pair.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry::device_verbs {

/// Names by which a NIC reaches registered memory.
struct memory_keys {
  std::uint32_t local;   ///< in entries of this NIC's own queues
  std::uint32_t remote;  ///< in entries of a peer's queues
};

/// One NIC, opened by one rank. Members may be called from any thread.
class direct_nic {
 public:
  virtual ~direct_nic() = default;

  virtual nic_vendor vendor() const = 0;

  /// Makes memory reachable, for peers too where `by_peers` says so.
  /// Lifetime  the memory outlives the NIC
  virtual result<memory_keys> register_memory(std::span<std::byte> memory, bool by_peers) = 0;

  /// Makes a reliable queue pair that is not connected, its completions cleared.
  /// Errors   invalid_argument entries is no power of two or too many; out_of_memory
  virtual result<queue_pair> make_queue(std::uint32_t num_entries) = 0;

  /// What the peer's NIC must know of a queue in order to connect to it.
  virtual result<std::vector<std::byte>> endpoint_of(queue_pair const& queue) = 0;

  /// Connects a queue to the peer's; the number of its first packet is `first_packet` on both
  /// sides.
  /// Errors   malformed_input what is no endpoint; unreachable
  virtual result<void> connect(queue_pair const& queue, std::span<std::byte const> endpoint) = 0;

  static constexpr std::uint32_t first_packet = 0;
};

}  // namespace ferry::device_verbs
