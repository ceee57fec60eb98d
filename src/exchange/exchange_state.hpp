// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What an exchange and its slots hold on the host.
#pragma once

#include <ferry/exchange.hpp>
#include <ferry/kernels/step.hpp>
#include <ferry/memory/buffer.hpp>
#include <ferry/transport/outbox.hpp>

#include "exchange/device_rank.hpp"
#include "exchange/expert_tables.hpp"
#include "exchange/node_paths.hpp"
#include "exchange/relay_slot.hpp"
#include "exec/capture_record.hpp"
#include "kernels/relay_kernels.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ferry {

/// The sizes that options and a group give.
exchange_shape shape_of(exchange_options const& options, int rank, int num_ranks,
                        bool on_device = false);

/// Resolves fp8_e4m3 to what ranks take whose fp8 is FNUZ (1) or not (0): see `mixed_rows`.
/// Shapes   fnuz [ranks]
void take_flavours(exchange_shape& shape, std::span<std::byte const> fnuz);

/// Positions of the layout on `shape.rank`.
/// Errors   invalid_argument they would not fit 31 bits
result<positions> positions_of(exchange_options const& options, exchange_shape const& shape);

/// What lies in every rank's window; `relay`: where records take two hops.
/// Errors   invalid_argument more bytes than an address space has
result<window_layout> window_of(exchange_options const& options, exchange_shape const& shape,
                                relay_shape const& relay = {});

/// The part of an exchange that its slots share.
struct exchange_core {
  group ranks;
  device where;
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
  std::vector<bool> cannot_wake{};       ///< by rank; empty where every peer wakes who waits for it
  cpu_kernels const* kernels = nullptr;  ///< null on other devices
  std::unique_ptr<device_rank> on_device{};  ///< null on the CPU
  int block_teams = 1;                       ///< teams per block
  expert_tables placed{};                    ///< empty where options.layers is 0
  std::unique_ptr<node_paths> paths{};       ///< null where records take one hop
  relay_kernels const* relays = nullptr;     ///< null on other devices

  bool is_on_network(int rank) const {
    return !readable.empty() && !readable[static_cast<std::size_t>(rank)];
  }
  status_record* status_of(int rank) const;
  waiter::settings waits(int slot) const;
  std::chrono::milliseconds timeout() const {
    return options.timeout.count() ? options.timeout : ranks.timeout();
  }
  /// Where this rank's rows lie, for offsets of a window; on a device its address there.
  std::byte* own_rows() const {
    auto const own = static_cast<std::size_t>(shape.rank);
    return on_device ? on_device->peers().rows[own] : readable[own];
  }
};

/// Finds the way to every peer's window: mapped, or through a network. Collective.
/// Errors   those of the transport, on all ranks
result<void> reach_peers(exchange_core& core);

/// Lets peers on a network, or with devices in other processes, finish with this rank's window,
/// within the timeout.
void take_leave(exchange_core& core);

/// What a network's failure means: the death of a peer, where the group knows or soon learns of
/// one.
failure cause_of(exchange_core const& core, error const& network, int slot);

/// Looks for a reason to stop waiting: a peer that is gone, or one that failed first (R9).
bool look_at_peers(exchange_core const& core, awaited const& what, bool expired, failure& found);

/// What became of this rank's kernels: the root cause of what one of them has recorded in the own
/// window (R9). Reads what the peers say of themselves.
/// Errors   device memory could not be read
result<failure> cause_on_device(exchange_core const& core);

/// Tests whether the windows of all ranks keep the order of a peer's stores. Collective; leaves
/// them as they were. Errors   unsupported they do not; device. All ranks get an error, or none
/// does
result<void> probe_device_windows(exchange_core& core, microbatch::state& slot);

/// A peer whose process ended, or -1.
int gone_peer(exchange_core const& core);

/// The message of a failed wait.
error explain(exchange_core const& core, failure const& f);

/// One slot.
struct microbatch::state final : capture_member {
  state(exchange_core& c, int slot_index) : core(c), slot(slot_index) {}
  /// Waits for the slot's last call on a queue that runs by itself: its memory is about to go.
  ~state();
  state(state const&) = delete;
  result<void> allocate();

  exchange_core& core;
  int slot;
  buffer memory;            ///< on the CPU
  device_memory on_device;  ///< elsewhere
  step_frame frame;
  std::optional<relay_slot> relay;  ///< where records take two hops
  std::byte* scratch = nullptr;
  std::size_t scratch_stride = 0;
  std::unique_ptr<waiter> waits;
  bool streams = false;  ///< the running step has more rows than the caches hold; the queue's

  enum class stage { idle, sent, received, returned };
  stage at = stage::idle;
  bool captured = false;                 ///< whether the open step is being captured
  bool capturing_call = false;           ///< whether the call that is under way is
  std::atomic<std::uint64_t> steps = 0;  ///< on the CPU: counted while other threads may look
  received last;
  int layer = 0;                        ///< of the open step
  send_rows sending;                    ///< of this step: later rounds send from it
  return_rows returning;                ///< likewise
  std::optional<queue> last_queue;      ///< of the last call, if that queue runs by itself
  std::int64_t most_tokens = 0;         ///< that the open step can have, as far as the host knows
  std::uint64_t told_without_room = 0;  ///< what wait() has reported before
  std::uint64_t told_misstated = 0;     ///< likewise

  /// What every call asks first. Returns  whether the call runs later than it returns: then the
  /// host looks at nothing that lies in memory.
  result<bool> expect(stage wanted, char const* call, queue const& q);
  result<void> check_queue(queue const& q) const;
  /// Blocks of a call's kernels.
  /// Errors   invalid_argument more than the exchange was made for, or fewer than 0
  result<int> blocks_of(char const* call, call_options const& with) const;
  /// Whether a step of `tokens` tokens on each rank has more rows than the caches hold.
  bool fills_caches(std::int64_t tokens) const;
  /// Starts the way home of these rows.
  result<void> give_back(queue& q, int blocks, const_tensor const& rows, bool summed);
  /// Runs kernels on the queue, then reports what went wrong in them; on a device, what is known
  /// of it so far.
  template <class Run>
  result<void> run(queue& q, int blocks, Run const& kernels);
  template <class Run>
  result<void> run_on_cpu(cpu_executor& executor, int blocks, Run const& kernels);
  template <class Run>
  result<void> run_on_device(queue& q, int blocks, Run const& kernels);

  /// On a device: what has been recorded, if anything; breaks the group.
  result<void> failure_so_far() const;
  result<void> wait_on_device(queue& q);
  result<void> wait_on_cpu(queue& q);
  /// Capacity and token counts that kernels had to cut, once the queue is done.
  result<void> report_cuts();
  /// Copies from the slot's memory, which no call uses now.
  result<void> read(void* to, void const* from, std::size_t bytes) const;

  result<void> is_whole() const override;
  void forget_capture() override;
  result<void> may_launch(queue const& q) override;
};

struct exchange::state {
  state() = default;
  ~state() {
    slots.clear();
    take_leave(core);
  }
  state(state const&) = delete;

  /// Errors   invalid_state the exchange has no tables
  result<void> expect_tables() const;

  exchange_core core;
  std::vector<ferry::microbatch> slots;
};

}  // namespace ferry
