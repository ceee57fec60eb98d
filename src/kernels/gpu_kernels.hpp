// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The exchange kernels as compiled for GPUs: one table per backend library.
#pragma once

#include <ferry/exec/gpu/gpu_team.hpp>
#include <ferry/exec/gpu/gpu_waits.hpp>
#include <ferry/kernels/credit.hpp>
#include <ferry/kernels/gather.hpp>
#include <ferry/kernels/give_back.hpp>
#include <ferry/kernels/probe.hpp>
#include <ferry/kernels/receive.hpp>
#include <ferry/kernels/send.hpp>
#include <ferry/transport/peer_table.hpp>

#include <cstddef>

namespace ferry {

/// What a launch needs beside the kernel. Everything that a pointer here or in the kernel points to
/// is device memory, or memory that the device can reach, and outlives the launch.
struct gpu_launch {
  void* stream = nullptr;  ///< the vendor's stream handle
  int blocks = 1;
  int teams = 1;  ///< per block, at most gpu_kernels::max_teams
  peer_table peers;
  gpu_waits waits;
  std::byte* scratch = nullptr;    ///< [blocks * teams, scratch_stride], starts at 16 bytes
  std::size_t scratch_stride = 0;  ///< at least row_scratch_bytes(), a multiple of 16
};

/// Whether the kernels can serve this shape: at most max_mapped_ranks ranks, and per rank no more
/// experts than a block's own memory has room for cursors.
constexpr bool gpus_can_serve(exchange_shape const& shape) {
  return shape.ranks <= max_mapped_ranks &&
         block_scratch_bytes(shape) <= gpu_block_memory::scratch_bytes;
}

/// The kernels of a step, as occupancy is asked for.
enum class gpu_kernel { send, receive, credit, give_back, gather, count_ };

/// Launches and questions. Everything is asynchronous but `load` and `resident_blocks`, works on
/// the calling thread's current device, and returns the vendor's status: 0 is success.
struct gpu_kernels {
  int lanes;      ///< of a team
  int max_teams;  ///< most teams in a block

  int (*send)(gpu_launch const&, send_rows const&);
  int (*receive)(gpu_launch const&, receive_rows const&);
  int (*credit)(gpu_launch const&, credit_round const&);
  int (*give_back)(gpu_launch const&, return_rows const&);
  int (*gather)(gpu_launch const&, gather_rows const&);
  int (*probe)(gpu_launch const&, probe_windows const&);

  /// Loads every kernel, so that no later launch does.
  int (*load)();
  /// How many blocks of a kernel the whole device holds at once: the fewest over the kernel's forms
  /// (row_forms.hpp).
  int (*resident_blocks)(gpu_kernel which, int teams, int* blocks);
  /// The vendor's text for a status.
  char const* (*describe)(int status);
};

/// This backend's table.
gpu_kernels const& exchange_kernels_of_gpu();

}  // namespace ferry
