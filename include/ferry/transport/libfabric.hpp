// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A transport over any provider of libfabric that has reliable datagrams and remote writes: `tcp`
/// between machines without RDMA, others by name. The library is loaded on demand.
#pragma once

#include <ferry/transport/transport.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ferry {

struct libfabric_options {
  /// Its name as `fi_info -l` lists it: "tcp", "efa", "cxi". Only tcp has been run.
  std::string provider = "tcp";
  /// The NIC, which the provider calls a domain: of tcp the name of a network interface ("eth0").
  /// Empty: that of `address`, else the provider's first.
  std::string domain{};
  /// The own address that peers are to use ("192.0.2.7"). Empty: the domain's.
  std::string address{};
  std::uint32_t queue_entries = 256;  ///< operations under way per peer, 4 to 32768
  /// Longest put, 64 to 8 MiB. Sources are copied to registered memory, which takes this much for
  /// every entry.
  std::size_t put_bytes = 8192;
  /// A peer to which the provider has taken nothing for so long, and of which it has completed
  /// nothing, counts as unreachable: providers try to connect for ever. 1 ms to a day.
  std::chrono::milliseconds connect_timeout{10000};
  std::string library = "libfabric.so.1";
};

/// Errors   invalid_argument naming the option, its value and its limits
result<void> validate(libfabric_options const& options);

/// Names of the provider's domains that this transport can use, in the provider's order.
/// Errors   unsupported this build has no libfabric, the library is not there, or the provider has
///          none
result<std::vector<std::string>> libfabric_domains(libfabric_options const& options = {});

/// Makes the transport of `rank`, which can reach every rank, itself included, or each of `peers`
/// where there are any. A put is an RMA write whose completion says that it is delivered. A signal
/// is a message of its own, which with `all_earlier` is sent when all earlier puts to its rank are
/// delivered; a thread of the transport at the peer stores the word and wakes who sleeps on it. No
/// order of operations is asked of the provider: messages are numbered.
/// Order    expose, then connect for every rank, before anything is posted to it; a rank must not
///          be posted to before it has exposed its window
/// Lifetime the thread ends with the transport; a window stays until then
/// Errors   unsupported this build has no libfabric, or the library, the provider or the domain is
///          not there; invalid_argument an option; transport the provider refused something
result<std::unique_ptr<transport>> make_libfabric_transport(int rank, int num_ranks,
                                                            libfabric_options options,
                                                            std::vector<int> peers = {});

}  // namespace ferry
