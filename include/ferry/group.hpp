// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A group: the ordered ranks that exchange with each other, and the ways to join one.
#pragma once

#include <ferry/base/result.hpp>
#include <ferry/group/bootstrap.hpp>
#include <ferry/memory/window.hpp>
#include <ferry/transport/reach.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ferry {

char const* to_string(reach how);

/// Most ranks of a group.
inline constexpr int max_ranks = 65536;

struct group_options {
  /// How long any wait on a peer may last before it becomes an error: 1 ms to 30 days.
  std::chrono::milliseconds timeout{30000};
  /// Ranks that count as one node, in order; those of different nodes do not map each other's
  /// windows. Makes one machine play several. 0: a machine is a node. The same on all ranks.
  int ranks_per_node = 0;
};

/// Makes a rank's bootstrap; called once, by `join`.
using bootstrap_factory = std::function<result<std::unique_ptr<bootstrap>>(group_options const&)>;

/// The meeting point of ranks that are threads of one process. Copies are the same point. Each rank
/// can be taken once.
/// Errors   (from join) invalid_argument the size, or the rank, is out of range; invalid_state the
///          rank was taken before
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
/// every pair keeps one connection, whose end is how a rank's death is seen. IPv6 addresses stand
/// in brackets: "[::1]:4711". A group of one rank uses no network. All ranks must reach each other
/// at the addresses under which rank 0 sees them. A rank listens on the interface of its address
/// alone.
/// With a `secret`, equal on all ranks, each shows rank 0 that it knows it, rank 0 shows it to
/// each, and strangers get no further; the secret itself is not sent. What travels afterwards is
/// neither encrypted nor signed: keep it to a network that you trust. Errors   (from join)
/// invalid_argument the address, rank or size is wrong, or rank 0 expects
///          another size, or has that rank already, or the secrets differ; io rank 0 cannot listen
///          at the address; timeout naming the ranks that did not come; unreachable naming a rank
///          that died on the way; malformed_input who answers at the address is no rank 0
bootstrap_factory tcp(std::string address, int rank, int size, std::string secret = {});

/// The same with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT from the environment, as torchrun
/// and most launchers set them, and the secret from FERRY_SECRET if it is set.
/// Errors   (from join) invalid_argument a variable is missing or not a number in range
bootstrap_factory tcp_from_environment();
/// Whether all four variables are set.
bool tcp_environment_is_set();

/// The windows of a group, as one rank reaches them: everything by rank.
struct shared_windows {
  std::vector<window> windows;     ///< empty where the peer's has 0 bytes, or is not mapped
  std::vector<reach> how;          ///< self, mapped, or network where the peer cannot be mapped
  std::vector<std::string> why;    ///< for `network`: why it cannot; empty for the others
  std::vector<std::size_t> bytes;  ///< sizes of the windows, of those not mapped too
  /// Of ranks that only count as ones of another node (group_options::ranks_per_node) and are
  /// threads of this process: for a network that is played. Empty, or a window where `windows` has
  /// none.
  std::vector<window> elsewhere{};

  reach reach_of(int rank) const { return how[static_cast<std::size_t>(rank)]; }
};

/// The ordered ranks of one job, as one of them sees it. Copies are the same membership; the last
/// one to go leaves the group (with groups that `without` made of it: the last one of all). Any
/// thread may call; collective calls of one rank's threads run one after the other, and must come
/// in the same order on all ranks.
class group {
 public:
  using shared_windows = ferry::shared_windows;

  int rank() const;
  int size() const;
  std::chrono::milliseconds timeout() const;

  /// Waits until every rank has come here. Collective.
  /// Errors   unreachable naming the rank that ended, timeout naming the ranks that did not come:
  ///          both break the group; invalid_state the group is broken, with the first cause
  result<void> barrier() const;

  /// Tells every rank how it went here, so that all go on or none does. A barrier too. Collective.
  /// Returns  nothing when it went well on all ranks; else this rank's own error, or that of the
  ///          lowest rank that has one, with its rank named
  result<void> agree(result<void> const& mine) const;

  /// Every rank's bytes in rank order, at most 64 MiB from each. Collective.
  /// Errors   as barrier; invalid_argument more than 64 MiB
  result<std::vector<bytes>> all_gather(std::span<std::byte const> mine) const;

  /// Makes a zeroed window of `size` bytes on this rank and maps the peers' windows. Collective:
  /// every rank asks once; sizes may differ, also be 0. Returns after a barrier, so every window is
  /// zeroed before any peer can write it (R1). All ranks succeed, or all fail.
  /// Errors   out_of_memory; unreachable, timeout; unsupported when a peer of this machine refuses
  ///          to be mapped (another user's process), with the reason. A peer on another machine, or
  ///          in another network namespace, is no error: `how` says `network`, `why` the reason
  result<shared_windows> share_window(std::size_t size) const;

  /// What is known of a peer now; never blocks. A rank that does not exist is `gone`.
  presence look(int peer) const;

  /// Ranks of this group that run on this machine (same boot id), itself included.
  int ranks_on_this_machine() const;
  /// How many of them come before this one.
  int index_on_this_machine() const;
  /// Whether this rank's node is that of `peer` (group_options::ranks_per_node).
  bool same_node(int peer) const;

  /// Marks the group broken: later collectives are refused with `why`. The first cause stays.
  /// `blamed` is the rank that it names, if it names one.
  void mark_broken(error why, int blamed = -1) const;
  /// The first cause, if the group is broken.
  result<void> usable() const;

  /// Ranks that errors of this group have named, or that have ended or left: whom a call of
  /// `without` would leave out. A rank that was only late is among them. Not the same on all ranks.
  std::vector<int> lost() const;

  /// The group without some ranks, without restarting the others: after `unreachable` or `timeout`
  /// has broken it. Ranks that are known to have ended are left out as well, also those that end
  /// while this call runs. Windows and exchanges are made anew, on fresh memory (R9); what this
  /// group held may go before or afterwards. Collective among those who go on; each may name other
  /// ranks, and all have the same answer: whom one of them leaves out, all leave out.
  /// Order    ranks are numbered anew, in the old order; `joined_as` tells who was who
  /// Lifetime this group is broken from now on, also after an error; then the call may be repeated,
  ///          with the ranks that the error names
  /// Errors   unreachable others go on without this rank, or so few are left that ranks which may
  ///          still live could go on elsewhere: whoever goes on is more than half of those who
  ///          joined (or half, with rank 0), or knows that all others have ended; timeout naming
  ///          the ranks that did not come; invalid_argument a rank that does not exist, or this
  ///          one; unsupported the bootstrap cannot do it
  /// Example  tests/multiprocess/recovery_test.cpp
  result<group> without(std::vector<int> const& lost = {}) const;

  /// The number under which a rank of this group joined, before any `without`; -1 when there is no
  /// such rank.
  int joined_as(int rank) const;

 private:
  friend result<group> join(bootstrap_factory, group_options);
  struct membership;
  std::shared_ptr<membership> membership_;
};

/// Joins a group. Collective: returns when all ranks are there.
/// Order    ranks are numbered by the bootstrap
/// Lifetime the group is left when the last copy of the result goes
/// Errors   invalid_argument rank, size or timeout out of range, or another version of ferry on a
///          peer; timeout, unreachable naming the peers that did not come; those of the bootstrap
/// Example  examples/01_hello_group
result<group> join(bootstrap_factory how, group_options options = {});

}  // namespace ferry
