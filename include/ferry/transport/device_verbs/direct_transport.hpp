// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A transport that writes a NIC's queues itself.
#pragma once

#include <ferry/transport/device_verbs/direct_nic.hpp>
#include <ferry/transport/transport.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace ferry::device_verbs {

struct direct_options {
  std::uint32_t queue_entries = 256;  ///< per peer, a power of two of at least 4
  /// Longest put. Sources are copied to memory that the NIC knows, which takes this much for every
  /// entry of every peer's queue.
  std::size_t put_bytes = 8192;
  /// How long a posting thread may hold up the ones after it before the queue counts as broken.
  std::chrono::milliseconds patience{10000};
};

/// Makes the transport of `rank` over a NIC, with one queue to each rank, itself included.
///
/// A signal with `all_earlier` is two entries: a fetch_add of 0 on the signal's word, which the
/// peer's NIC carries out after every earlier write of the queue, and a fenced write of the word,
/// which starts when the fetch_add has come back. So nothing depends on the order of two writes.
/// Order    expose, then connect for every rank, before anything is posted to it
/// Errors   invalid_argument queue_entries, put_bytes, or a rank; what the NIC refuses
result<std::unique_ptr<transport>> make_direct_transport(int rank, int num_ranks,
                                                         std::unique_ptr<direct_nic> nic,
                                                         direct_options options);

}  // namespace ferry::device_verbs
