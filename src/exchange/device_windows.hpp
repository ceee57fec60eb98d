// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Windows in device memory, and those of the peers as this rank's device reaches them.
#pragma once

#include "exec/device_backend.hpp"

#include <ferry/exec/device.hpp>
#include <ferry/group.hpp>
#include <ferry/transport/peer_table.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace ferry {

/// A peer's memory, opened from a handle; closed with the object.
class imported_memory {
 public:
  imported_memory(device where, void* at) : where_(std::move(where)), at_(at) {}
  imported_memory(imported_memory&& other) noexcept
      : where_(std::move(other.where_)), at_(std::exchange(other.at_, nullptr)) {}
  ~imported_memory();

 private:
  device where_;
  void* at_;
};

struct device_windows {
  peer_table peers;
  int ranks_on_this_device = 1;
  /// Own memory, and that of peers which are threads of this process: none goes while a peer may
  /// still store into it.
  std::vector<std::shared_ptr<device_memory>> kept;
  std::vector<imported_memory> imported;

  /// Where a part of a window really starts, for copies.
  std::byte* flags(int rank) const { return peers.flags[rank]; }
};

/// Makes this rank's window, flags and rows in memory of their kind, and maps those of the peers:
/// by the pointer itself between threads, by handles between processes. Collective; returns after a
/// barrier, so every window is zeroed before a peer can write it (R1). All ranks succeed, or all
/// fail.
/// Errors   unsupported a peer runs on another kind of device or on another machine, or there are
///          too many ranks; out_of_memory, device; those of group::all_gather
result<device_windows> share_device_windows(group const& ranks, device const& where,
                                            std::size_t flag_bytes, std::size_t row_bytes);

}  // namespace ferry
