// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Where all ranks of one machine wait for each other before each measurement.
#pragma once

#include <ferry/group.hpp>

#include <chrono>
#include <cstdint>

namespace ferry::bench {

/// A barrier in shared memory, which spins where every thread has a core of its own, and else
/// sleeps. The group's own barrier goes through sockets and would start ranks too far apart.
class start_line {
 public:
  /// Collective.
  /// Errors   those of group::share_window; unsupported a rank cannot be mapped
  static result<start_line> make(group const& ranks, int threads_per_rank);

  /// Waits until all ranks have come.
  /// Errors   timeout some did not come within the group's timeout
  result<void> wait();

  /// Whether ranks times threads exceed this process's cores.
  bool crowded() const { return crowded_; }

 private:
  shared_windows windows_;
  std::uint32_t* arrived_ = nullptr;  ///< in the window of rank 0
  std::uint32_t* turn_ = nullptr;
  std::uint32_t size_ = 0;
  bool crowded_ = false;
  std::chrono::milliseconds timeout_{};
};

/// Cores that this process may use.
int usable_cores();

/// A clock that all processes of a machine share.
std::int64_t nanoseconds_now();

}  // namespace ferry::bench
