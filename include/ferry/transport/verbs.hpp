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
  int timeout = 14;                   ///< 1 to 31
  int retries = 6;                    ///< 0 to 6; 7 means for ever to some NICs
  std::uint32_t queue_entries = 256;  ///< per peer, at least 4
  /// Longest put. Sources are copied to registered memory, which takes this much for every entry.
  std::size_t put_bytes = 8192;
  int mtu = 0;  ///< most bytes of a packet: 256 to 4096, a power of two; 0: what both ports can do
  std::string library = "libibverbs.so.1";
};

/// Errors   invalid_argument naming the option, its value and its limits
result<void> validate(verbs_options const& options);

/// Names of the RDMA devices of this machine.
/// Errors   unsupported this build has no verbs, or the library is not there
result<std::vector<std::string>> verbs_devices(verbs_options const& options = {});

/// Those of them that can be used with these options: their port is active, and has an address.
/// Errors   as verbs_devices
result<std::vector<std::string>> working_verbs_devices(verbs_options const& options);

/// Makes the transport of `rank`, with one reliable connected queue pair to each rank, itself
/// included, or to each of `peers` where there are any. A signal with `all_earlier` is an atomic
/// addition to its word of what the word lacks: the peer carries it out after every earlier write,
/// and its writer knows what the word holds. Where either end has no atomics it is a read of the
/// word and a fenced write of it, which starts when the read has come back.
/// Order    expose, then connect for every rank, before anything is posted to it. The words of
///          signals are 0 when they are exposed, and have one writer
/// Errors   unsupported this build has no verbs, the library or a device is missing;
///          invalid_argument an option; transport the device refused something
result<std::unique_ptr<transport>> make_verbs_transport(int rank, int num_ranks,
                                                        verbs_options options,
                                                        std::vector<int> peers = {});

}  // namespace ferry
