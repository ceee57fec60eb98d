// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The contract of a network transport, host side: puts into peers' windows, and signals.
#pragma once

#include <ferry/base/result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ferry {

/// The answer of a posting call. `try_again` is not an error: nothing was posted, call progress().
enum class post { posted, try_again };

/// What a signal's arrival proves about this sender's puts to the same rank.
enum class strength {
  this_put,     ///< nothing but itself
  all_earlier,  ///< every put posted before it is visible to whoever acquires the signal's word
};

/// What a transport can do, as data. A program asks before it relies on it.
struct abilities {
  bool remote_add = false;        ///< signals may add instead of storing
  bool ordered_puts = false;      ///< puts to one rank become visible in posting order
  bool from_device = false;       ///< a kernel may post by itself
  bool fetches = false;           ///< peers' windows can be read
  bool settles = false;           ///< puts can be waited for until they are visible
  std::size_t max_put_bytes = 0;  ///< longest single put
  std::size_t inline_bytes = 0;   ///< puts up to this length read their source while posting
};

/// A place in a rank's exposed window.
struct remote_region {
  int rank;
  std::size_t offset;
  std::size_t bytes;
};

/// Moves bytes from local memory into peers' windows. Every member may be called from any thread.
/// None blocks except flush and fetch.
class transport {
 public:
  virtual ~transport() = default;

  virtual abilities what_it_can() const = 0;

  /// Bytes by which peers can connect to this rank's window; valid while the transport lives.
  virtual result<std::vector<std::byte>> expose(std::span<std::byte> window) = 0;
  /// Makes `rank`'s window reachable by the bytes that it exposed.
  virtual result<void> connect(int rank, std::span<std::byte const> address) = 0;

  /// Writes `from` to `to`, some time. Promises no order among puts. `from` must stay unchanged
  /// until a flush of that rank has returned, or a later signal's consequence proves arrival.
  /// Errors   invalid_argument outside the peer's window or longer than max_put_bytes; unreachable
  virtual result<post> put(remote_region to, std::byte const* from) = 0;

  /// Stores `value` in the 8-byte word at `to`, with the promise of `strength`.
  virtual result<post> signal(remote_region to, std::uint64_t value, strength promise) = 0;

  /// Handles completions. Never blocks.
  /// Errors   transport a posted operation has failed since the last call; unreachable
  virtual result<void> progress() = 0;

  /// Returns once everything posted to `rank` is complete: sources may be reused.
  /// Errors   timeout naming the rank; transport, unreachable
  virtual result<void> flush(int rank, std::chrono::milliseconds timeout) = 0;

  /// Posts what is complete once every earlier put to `rank` is visible there, also to whoever is
  /// told so by other means than a signal of this transport.
  /// Errors   unsupported unless abilities say `settles`; as put
  virtual result<post> settle(int rank) {
    return error{error_code::unsupported, "this transport cannot tell when puts to rank " +
                                              std::to_string(rank) + " are visible"};
  }
  /// Whether the last settle of that rank, if there was any, is complete. Never blocks.
  /// Errors   as settle, and as progress
  virtual result<bool> settled(int rank) {
    return error{error_code::unsupported, "this transport cannot tell when puts to rank " +
                                              std::to_string(rank) + " are visible"};
  }

  /// Reads `from` into `to`. Slow: to ask what a peer says of itself, not to move rows. Words that
  /// their owner stores meanwhile may be read in any order.
  /// Errors   unsupported unless abilities say `fetches`; timeout naming the rank; transport,
  ///          unreachable
  virtual result<void> fetch(remote_region from, std::byte* to, std::chrono::milliseconds timeout) {
    static_cast<void>(to), static_cast<void>(timeout);
    return error{error_code::unsupported,
                 "this transport cannot read the window of rank " + std::to_string(from.rank)};
  }

  /// The peer that the first failed operation went to; -1 as long as none failed, or unknown.
  virtual int failed_rank() const { return -1; }
};

}  // namespace ferry
