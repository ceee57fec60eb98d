// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What an exchange and its slots hold on the host.
#pragma once

#include <ferry/exchange.hpp>
#include <ferry/kernels/step.hpp>
#include <ferry/memory/buffer.hpp>
#include <ferry/transport/outbox.hpp>

#include "kernels/cpu_kernels.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ferry {

/// The sizes that options and a group give.
exchange_shape shape_of(exchange_options const& options, int rank, int num_ranks);

/// Positions of the layout on `shape.rank`.
/// Errors   invalid_argument they would not fit 31 bits
result<positions> positions_of(exchange_options const& options, exchange_shape const& shape);

/// What lies in every rank's window.
/// Errors   invalid_argument more bytes than an address space has
result<window_layout> window_of(exchange_options const& options, exchange_shape const& shape);

/// The part of an exchange that its slots share.
struct exchange_core {
  group ranks;
  exchange_options options;
  exchange_shape shape;
  positions layout;
  window_layout window;
  shared_windows windows;
  std::vector<std::byte*> mapped;    ///< by rank, as the delivery sees them: null on the network
  std::vector<std::byte*> readable;  ///< by rank, wherever the memory can be read: for R9's records
  std::vector<std::int32_t> owners;
  std::vector<std::byte> receives_fnuz;
  std::unique_ptr<outbox> out;
  cpu_kernels const* kernels = nullptr;

  status_record* status_of(int rank) const;
  waiter::settings waits(int slot) const;
};

/// Looks for a reason to stop waiting: a peer that is gone, or one that failed first (R9).
bool look_at_peers(exchange_core const& core, awaited const& what, bool expired, failure& found);

/// The message of a failed wait.
error explain(exchange_core const& core, failure const& f);

/// One slot.
struct microbatch::state {
  state(exchange_core& c, int slot_index) : core(c), slot(slot_index) {}
  result<void> allocate();

  exchange_core& core;
  int slot;
  buffer memory;
  step_frame frame;
  std::byte* scratch = nullptr;
  std::size_t scratch_stride = 0;
  std::unique_ptr<waiter> waits;
  bool streams = false;  ///< the open step has more rows than the caches hold

  enum class stage { idle, sent, received, returned };
  stage at = stage::idle;
  std::atomic<std::uint64_t> steps = 0;  ///< counted while other threads may look
  received last;
  send_rows sending;      ///< of this step: later rounds send from it
  return_rows returning;  ///< likewise

  /// Rounds of the open step, once round 0 is received.
  int rounds() const { return *frame.memory.rounds; }
  result<void> expect(stage wanted, char const* call) const;
  result<void> check_queue(queue const& q) const;
  /// Whether a step of `tokens` tokens on each rank has more rows than the caches hold.
  bool fills_caches(std::int64_t tokens) const;
  /// Starts the way home of the rows in `returning`.
  result<void> give_back(queue& q);
  /// Runs kernels on the queue, then reports what went wrong in them.
  template <class Run>
  result<void> run(queue& q, Run const& kernels);
};

struct exchange::state {
  exchange_core core;
  std::vector<ferry::microbatch> slots;
};

}  // namespace ferry
