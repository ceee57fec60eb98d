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

  // Where records take two hops, a rank is a relay before it receives, either way.
  void operator()(send_rows const& k) const {
    if (!slot.relay) return kernels.send(with, k);
    slot.core.relays->send(with, {with_frame(k, slot.relay->by_node), slot.relay->frame});
  }
  void operator()(receive_rows const& k) const {
    if (!slot.relay) return kernels.receive(with, k);
    slot.core.relays->forward(with, {slot.relay->forwarding, slot.relay->frame});
    slot.core.relays->receive(with, {k, slot.relay->frame});
  }
  void operator()(credit_round const& k) const { kernels.credit(with, k); }
  void operator()(return_rows const& k) const {
    if (!slot.relay) return kernels.give_back(with, k);
    slot.core.relays->give_back(with, {k, slot.relay->frame});
  }
  void operator()(gather_rows const& k) const {
    if (!slot.relay) return kernels.gather(with, k);
    slot.core.relays->forward_home(with, {slot.relay->forwarding, slot.relay->frame, k.skip});
    kernels.gather(with, with_frame(k, slot.relay->by_node));
  }

  /// Whether the step goes on with this round; of round 0, whether it begins.
  bool comes(int round) const {
    return round == 0 || (round < *slot.frame.memory.rounds && !slot.waits->failed());
  }
  bool takes_rounds() const { return *slot.frame.memory.rounds > 1; }

 private:
  template <class Kernel>
  static Kernel with_frame(Kernel k, step_frame const& frame) {
    k.frame = frame;
    return k;
  }
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
