// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How the ranks of a job meet over TCP: all say hello to rank 0, which tells each where the others
/// listen; then every pair connects. Strangers on any of the ports are turned away.
#pragma once

#include <ferry/base/result.hpp>

#include "group/link.hpp"
#include "group/machine.hpp"
#include "group/socket.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace ferry {

struct rendezvous {
  endpoint where;  ///< of rank 0
  int rank = 0;
  int size = 1;
  secret job{};  ///< equal on all ranks of the job; zeros where nothing could carry one
  std::string shared_secret{};  ///< empty: nobody is asked to prove anything
  descriptor listener{};        ///< rank 0: listens at `where` already, or none
  /// How the addresses of `where` are found.
  result<std::vector<socket_address>> (*find)(endpoint const&, deadline) = resolve;
};

/// A link to every other rank, in rank order; none to oneself.
/// Errors  see ferry::tcp
using links = std::vector<std::unique_ptr<link>>;
result<links> meet(rendezvous place, std::chrono::milliseconds timeout);

/// Opens rank 0's port, so that `where.port` is known before the others are told.
result<descriptor> open_rendezvous(endpoint const& where, deadline end);

/// The bootstrap of ranks that have met.
std::unique_ptr<bootstrap> bootstrap_over(int rank, links to_peers);

}  // namespace ferry
