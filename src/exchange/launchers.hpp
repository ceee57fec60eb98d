// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How a slot's kernels are started, on the CPU and on other devices: the calls of a microbatch are
/// written once over either.
#pragma once

#include "exchange/exchange_state.hpp"

namespace ferry {

/// Each kernel is done when the call returns, so the host sees how many rounds a step takes.
struct cpu_launcher {
  cpu_launch with;
  cpu_kernels const& kernels;
  microbatch::state& slot;

  void operator()(send_rows const& k) const { kernels.send(with, k); }
  void operator()(receive_rows const& k) const { kernels.receive(with, k); }
  void operator()(credit_round const& k) const { kernels.credit(with, k); }
  void operator()(return_rows const& k) const { kernels.give_back(with, k); }
  void operator()(gather_rows const& k) const { kernels.gather(with, k); }

  /// Whether the step goes on with this round; of round 0, whether it begins.
  bool comes(int round) const {
    return round == 0 || (round < *slot.frame.memory.rounds && !slot.waits->failed());
  }
  bool takes_rounds() const { return *slot.frame.memory.rounds > 1; }
};

/// Kernels are put on the stream. How many rounds the step takes is known there alone: all that it
/// may take are launched, and those that it does not take return at once.
struct device_launcher {
  gpu_launch with;
  gpu_kernels const& kernels;
  int max_rounds;
  int mutable failed = 0;  ///< the vendor's status of the first launch that failed

  void operator()(send_rows const& k) const { note(kernels.send(with, k)); }
  void operator()(receive_rows const& k) const { note(kernels.receive(with, k)); }
  void operator()(credit_round const& k) const { note(kernels.credit(with, k)); }
  void operator()(return_rows const& k) const { note(kernels.give_back(with, k)); }
  void operator()(gather_rows const& k) const { note(kernels.gather(with, k)); }

  bool comes(int round) const { return round < max_rounds && !failed; }
  bool takes_rounds() const { return max_rounds > 1; }

 private:
  void note(int status) const {
    if (!failed) failed = status;
  }
};

}  // namespace ferry
