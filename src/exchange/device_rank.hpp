// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What an exchange holds on a device other than the CPU, and how its host looks in there.
#pragma once

#include "exchange/device_windows.hpp"
#include "kernels/gpu_kernels.hpp"

#include <ferry/exec/queue.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace ferry {

/// The exchange's kernels for that device.
/// Errors   unsupported the CPU has none of this form
result<gpu_kernels const*> kernels_of(device const& where);

class device_rank {
 public:
  /// Makes windows and all else that the slots share. Collective.
  static result<std::unique_ptr<device_rank>> make(group const& ranks, device const& where,
                                                   std::size_t flag_bytes, std::size_t row_bytes,
                                                   std::size_t status_offset);

  device const& where() const { return where_; }
  gpu_kernels const& kernels() const { return *kernels_; }
  peer_table const& peers() const { return windows_.peers; }
  int ranks_on_this_device() const { return windows_.ranks_on_this_device; }
  gpu_waits waits(int slot, std::chrono::milliseconds timeout) const;

  /// Copies from device memory, on a queue of its own: what other queues are doing goes on.
  /// Errors   device; timeout the device does not answer
  result<void> read(void* to, void const* from, std::size_t bytes) const;
  result<void> write(void* to, void const* from, std::size_t bytes) const;
  /// What a rank says of itself in its window.
  result<status_record> status_of(int rank) const;

  /// Whether a wait of a kernel has recorded a failure; never blocks.
  bool told() const;
  /// Makes every kernel of this rank leave.
  result<void> give_up() const;

  /// Whether peers' windows are memory of other processes, which must not go while this rank may
  /// still store into it. Memory of threads is kept by all that use it.
  bool maps_other_processes() const { return !windows_.imported.empty(); }
  /// Tells every peer, by `word` at the offset `place_of(this rank)` in its window, that this rank
  /// will touch the window no more, and waits until all peers have told this one, have gone or left
  /// the group, or `longest` has passed. No kernel of this rank may be under way.
  void take_leave(group const& ranks, std::function<std::size_t(int rank)> const& place_of,
                  std::uint64_t word, std::chrono::milliseconds longest) const;

 private:
  device_rank(device where, queue reader) : where_(std::move(where)), reader_(std::move(reader)) {}
  result<void> transfer(void* to, void const* from, std::size_t bytes) const;

  device where_;
  gpu_kernels const* kernels_ = nullptr;
  device_windows windows_;
  std::size_t status_offset_ = 0;
  device_memory failed_;   ///< one word, see gpu_waits
  device_memory told_;     ///< one word of the host
  device_memory staging_;  ///< of the host: copies that are waited for go through it
  mutable std::mutex guard_;
  mutable queue reader_;
};

}  // namespace ferry
