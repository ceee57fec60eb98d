// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A group: the ordered ranks that exchange with each other, and the ways to join one.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/group/bootstrap.hpp>
#include <ferry/memory/window.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ferry {

/// How a peer's window is reached.
enum class reach : std::uint8_t {
  self,     ///< this rank's own
  mapped,   ///< loads and stores through a pointer
  network,  ///< puts and signals through a transport
};

struct group_options {
  /// How long any wait on a peer may last before it becomes an error.
  std::chrono::milliseconds timeout{30000};
};

/// Makes a rank's bootstrap; called once, by `join`.
using bootstrap_factory = std::function<result<std::unique_ptr<bootstrap>>(group_options const&)>;

/// The meeting point of ranks that are threads of one process. Copies are the same point.
/// Example  auto ranks = ferry::threads(8);  // then in thread i: ferry::join(ranks.rank(i))
class thread_ranks {
 public:
  explicit thread_ranks(int size);
  int size() const;
  bootstrap_factory rank(int rank) const;

 private:
  struct meeting;
  std::shared_ptr<meeting> meeting_;
};
inline thread_ranks threads(int size) {
  return thread_ranks(size);
}

/// Ranks that meet over TCP: rank 0 listens at `address` ("host:port"), the others connect, and
/// every pair keeps one connection, whose end is how a rank's death is seen.
bootstrap_factory tcp(std::string address, int rank, int size);

/// The same with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT from the environment, as torchrun
/// and most launchers set them.
/// Errors   (from join) invalid_argument a variable is missing or not a number in range
bootstrap_factory tcp_from_environment();
/// Whether all four variables are set.
bool tcp_environment_is_set();

/// The ordered ranks of one job, as one of them sees it. Copies are the same membership; the last
/// one to go leaves the group.
class group {
 public:
  int rank() const;
  int size() const;
  std::chrono::milliseconds timeout() const;

  /// Waits until every rank has come here. Collective.
  result<void> barrier() const;

  /// Every rank's bytes in rank order. Collective.
  result<std::vector<bytes>> all_gather(std::span<std::byte const> mine) const;

  /// Makes a zeroed window of `size` bytes on this rank and maps the peers' windows. Collective:
  /// every rank asks once, sizes may differ. Returns after a barrier, so every window is zeroed
  /// before any peer can write it (R1).
  /// Returns  one window per rank; an empty one where the peer cannot be mapped (`how` says so)
  /// Errors   out_of_memory; unreachable, timeout; unsupported when a peer of this machine cannot
  ///          be mapped, with the reason
  struct shared_windows {
    std::vector<window> windows;
    std::vector<reach> how;
  };
  result<shared_windows> share_window(std::size_t size) const;

  /// What is known of a peer now; never blocks.
  presence look(int peer) const;

  /// Ranks of this group that run on this machine (same boot id), itself included.
  int ranks_on_this_machine() const;

  /// Marks the group broken: later collectives are refused with `why`. The first cause stays.
  void mark_broken(error why) const;
  /// The first cause, if the group is broken.
  result<void> usable() const;

 private:
  friend result<group> join(bootstrap_factory, group_options);
  struct membership;
  std::shared_ptr<membership> membership_;
};

/// Joins a group. Collective: returns when all ranks are there.
/// Order    ranks are numbered by the bootstrap
/// Lifetime the group is left when the last copy of the result goes
/// Errors   invalid_argument rank or size out of range; timeout, unreachable peers that did not
/// come Example  examples/01_hello_group
result<group> join(bootstrap_factory how, group_options options = {});

}  // namespace ferry
