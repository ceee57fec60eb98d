// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A network that is not there: a thread that plays the NIC, late and out of order as real ones
/// are.
#pragma once

#include <ferry/transport/mapped_window.hpp>
#include <ferry/transport/transport.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace ferry {

/// What goes wrong, and how. All chances are out of 1024 per operation; the same seed gives the
/// same choices for the same sequence of calls.
struct loopback_faults {
  std::uint64_t seed = 1;
  int reorder = 512;  ///< chance that the NIC takes some other waiting operation first
  int delay = 0;      ///< chance that the NIC pauses before an operation
  std::chrono::microseconds longest_delay{200};
  int try_again = 0;  ///< chance that posting answers try_again
  /// Chance that a put is lost without a word: it never completes, and no later signal that would
  /// cover it arrives.
  int drop = 0;
  int fail = 0;  ///< chance that an operation completes with an error, and covers nothing
  std::size_t queue_depth = 1024;  ///< operations that may wait; posting more answers try_again
};

/// Makes the loopback network of one rank. The windows are mapped, but only the NIC's thread
/// touches them; a signal with `all_earlier` waits in the NIC until every earlier put to its rank
/// is done.
/// Lifetime  the transport's end waits for the NIC's current operation and drops the others
std::unique_ptr<transport> make_loopback_transport(int rank, std::vector<mapped_window> windows,
                                                   loopback_faults faults);

}  // namespace ferry
