// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The start-up test of device windows: memory that does not behave is refused before a step is
// wrong.

#include "base/fail.hpp"
#include "exchange/exchange_state.hpp"
#include "exec/current_device.hpp"

#include <ferry/kernels/probe.hpp>

#include <algorithm>
#include <chrono>

namespace ferry {
namespace {

constexpr int probe_rounds = 64;

// The deadline of steps may be too short for what is done once: on a loaded machine ranks begin at
// different times.
std::chrono::milliseconds deadline_of(exchange_core const& core) {
  return std::max<std::chrono::milliseconds>(core.timeout(), std::chrono::seconds{10});
}

result<void> run_probe(exchange_core& core, microbatch::state& slot, probe_windows const& probe) {
  device_rank const& rank = *core.on_device;
  FERRY_TRY(queue q, queue::on(core.where));
  FERRY_TRY(current_device const chosen, current_device::make(core.where));
  gpu_launch const with{.stream = q.stream(),
                        .blocks = 1,
                        .teams = core.block_teams,
                        .peers = rank.peers(),
                        .waits = rank.waits(slot.slot, deadline_of(core)),
                        .scratch = slot.scratch,
                        .scratch_stride = slot.scratch_stride};
  if (int const status = rank.kernels().probe(with, probe))
    return fail(error_code::device, "the test of windows could not be started on {}: {}",
                core.where.name(), rank.kernels().describe(status));
  FERRY_CHECK(q.wait(2 * deadline_of(core)));
  if (rank.told()) {
    FERRY_TRY(status_record const mine, rank.status_of(core.shape.rank));
    return fail(
        error_code::unsupported,
        "rank {} on {} saw no word of rank {} in its window within {} ms: the devices do not "
        "reach each other's memory, or not while kernels run",
        core.shape.rank, core.where.name(), mine.record.wait.rank, deadline_of(core).count());
  }
  std::uint32_t wrong = 0;
  FERRY_CHECK(rank.read(&wrong, probe.wrong, sizeof wrong));
  if (wrong)
    return fail(error_code::unsupported,
                "{} of {} pieces were not in the window of rank {} on {} when the words that cover "
                "them were: this memory does not keep the order of a peer's stores",
                wrong, std::int64_t{probe_rounds} * core.shape.ranks * probe.pieces(),
                core.shape.rank, core.where.name());
  return {};
}

// R1: all as it was made, before any step.
result<void> zero_again(exchange_core& core, probe_windows const& probe) {
  FERRY_TRY(queue q, queue::on(core.where));
  peer_table const& peers = core.on_device->peers();
  step_frame const& frame = probe.frame;
  std::byte* const flags = peers.flags[peers.rank];
  FERRY_CHECK(q.fill(flags, std::byte{0}, flag_bytes_of(core.window)));
  auto const size = static_cast<std::size_t>(probe.pieces()) * sizeof(piece);
  for (int s = 0; s < core.shape.ranks; ++s)
    FERRY_CHECK(q.fill(core.own_rows() + frame.at(slot_field::rows, s, 0), std::byte{0}, size));
  FERRY_CHECK(q.fill(probe.wrong, std::byte{0}, sizeof *probe.wrong));
  return q.wait(deadline_of(core));
}

}  // namespace

result<void> probe_device_windows(exchange_core& core, microbatch::state& slot) {
  probe_windows const probe{slot.frame, probe_rounds, slot.frame.memory.expert_counts};
  FERRY_CHECK(core.ranks.agree(run_probe(core, slot, probe)));
  return core.ranks.agree(zero_again(core, probe));
}

}  // namespace ferry
