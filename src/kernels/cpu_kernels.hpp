// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The exchange kernels as compiled for one CPU code level.
#pragma once

#include <ferry/exec/cpu/code_level.hpp>
#include <ferry/exec/cpu/cpu_executor.hpp>
#include <ferry/exec/cpu/waiter.hpp>
#include <ferry/kernels/credit.hpp>
#include <ferry/kernels/gather.hpp>
#include <ferry/kernels/give_back.hpp>
#include <ferry/kernels/receive.hpp>
#include <ferry/kernels/send.hpp>
#include <ferry/transport/network.hpp>

namespace ferry {

/// What a launch needs beside the kernel.
struct cpu_launch {
  cpu_executor* executor;
  int blocks;  ///< of the executor's teams, the first ones run
  waiter* waits;
  std::byte* scratch;  ///< [teams, scratch_stride]
  std::size_t scratch_stride;
  mapped_delivery mapped;
  outbox* out;  ///< null where all peers are mapped
  /// Whether copies of rows go past the caches, read when a kernel starts; null: they do not.
  bool const* streams = nullptr;
};

/// Runs a kernel on all teams of the launch and returns when it is done.
struct cpu_kernels {
  void (*send)(cpu_launch const&, send_rows const&);
  void (*receive)(cpu_launch const&, receive_rows const&);
  void (*credit)(cpu_launch const&, credit_round const&);
  void (*give_back)(cpu_launch const&, return_rows const&);
  void (*gather)(cpu_launch const&, gather_rows const&);
};

/// The kernels for a level that best_code_level() allows.
cpu_kernels const& cpu_kernels_for(code_level level);

}  // namespace ferry
