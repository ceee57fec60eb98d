// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A transport over any RDMA NIC (RoCE, InfiniBand) through libibverbs, which is loaded on demand.
#pragma once

#include <ferry/transport/transport.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ferry {

struct verbs_options {
  std::string device{};  ///< its name ("mlx5_0"); empty: the first that has an active port
  int port = 1;
  /// Index of the address to use; -1: RoCE v2 over IPv4 if there is one, else RoCE v2, else the
  /// first.
  int gid_index = -1;
  int service_level = 0;  ///< 0 to 15
  int traffic_class = 0;  ///< 0 to 255
  /// A lost packet is sent again after 4.096 us * 2^timeout, `retries` times; then the peer counts
  /// as unreachable.
  int timeout = 14;
  int retries = 6;                    ///< 0 to 6; 7 means for ever to some NICs
  std::uint32_t queue_entries = 256;  ///< per peer, at least 4
  /// Longest put. Sources are copied to registered memory, which takes this much for every entry.
  std::size_t put_bytes = 8192;
  std::string library = "libibverbs.so.1";
};

/// Names of the RDMA devices of this machine.
/// Errors   unsupported this build has no verbs, or the library is not there
result<std::vector<std::string>> verbs_devices(verbs_options const& options = {});

/// Makes the transport of `rank`, with one reliable connected queue pair to each rank, itself
/// included. A signal with `all_earlier` is an atomic addition of 0 to its word (a read of it,
/// where the device has no atomics), which the peer carries out after every earlier write, and a
/// fenced write of the word, which starts when that has come back. Order    expose, then connect
/// for every rank, before anything is posted to it Errors   unsupported this build has no verbs,
/// the library or a device is missing; invalid_argument
///          an option; transport the device refused something
result<std::unique_ptr<transport>> make_verbs_transport(int rank, int num_ranks,
                                                        verbs_options options);

}  // namespace ferry
