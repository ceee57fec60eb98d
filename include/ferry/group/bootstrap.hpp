// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How ranks find each other before they share memory, and learn of each other's end.
#pragma once

#include <ferry/base/result.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace ferry {

using bytes = std::vector<std::byte>;

/// What is known of a peer's process or thread.
enum class presence {
  here,  ///< lives, as far as anybody can tell
  left,  ///< left the group in good order
  gone,  ///< its process ended, or its connection broke, without a word
};

/// The contract of a bootstrap. Slow and simple; used for setting up and for watching, never for
/// rows. All members may be called from any thread; the collective ones one at a time.
class bootstrap {
 public:
  virtual ~bootstrap() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Every rank's bytes, in rank order. Collective; lengths may differ, also be 0.
  /// Errors   unreachable naming the rank that ended; timeout naming the ranks that did not come
  virtual result<std::vector<bytes>> all_gather(std::span<std::byte const> mine,
                                                std::chrono::milliseconds timeout) = 0;

  /// What is known of `peer` now. Never blocks; costs a few system calls at most.
  virtual presence look(int peer) = 0;

  /// True when the ranks are threads of this process and reach each other by plain pointers.
  virtual bool shares_address_space() const = 0;

  /// Says goodbye: from now on peers see `left`, unless a bootstrap that `without` made of this one
  /// is still there. Never blocks for long. Called by ~group as well.
  virtual void leave() = 0;

  /// The same without some ranks, and without those that are known to have ended. Collective among
  /// those who go on, who number themselves anew in the old order; this one has no collectives any
  /// more, but may be asked again. Whoever goes on knows that no others do.
  /// Errors   unreachable others go on without this rank, or so few are left that others might;
  ///          timeout naming the ranks that did not come; unsupported
  virtual result<std::unique_ptr<bootstrap>> without(std::vector<int> const& lost,
                                                     std::chrono::milliseconds timeout);
  /// The number under which a rank joined, before any `without`.
  virtual int joined_as(int rank) const { return rank; }
  /// Ranks that had not come to the last collective that failed.
  virtual std::vector<int> missing() const { return {}; }
};

}  // namespace ferry
