// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "base/fail.hpp"
#include "exchange/announced.hpp"
#include "exchange/exchange_state.hpp"
#include "exchange/hops.hpp"
#include "exec/current_device.hpp"

#include <ferry/exec/cpu/code_level.hpp>

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>

namespace ferry {
namespace {

struct named_option {
  char const* name;
  std::int64_t value;
};

// Everything that must be the same on all ranks.
std::vector<named_option> common_options(exchange_options const& o) {
  auto const n = [](auto x) { return static_cast<std::int64_t>(x); };
  return {{"num_experts", o.num_experts},
          {"expert_slots", o.expert_slots},
          {"layers", o.layers},
          {"topk", o.topk},
          {"hidden", o.hidden},
          {"max_tokens", o.max_tokens},
          {"wire", n(o.wire)},
          {"combine_wire", n(o.combine_wire)},
          {"reduction", n(o.reduction)},
          {"opaque_row_bytes", n(o.opaque_row_bytes)},
          {"opaque_scale_bytes", n(o.opaque_scale_bytes)},
          {"num_microbatches", o.num_microbatches},
          {"round_tokens", o.round_tokens},
          {"chunk_tokens", o.chunk_tokens},
          {"via", n(o.via)},
          {"carrier", n(o.carrier)},
          {"rails", o.rails},
          {"hops", n(o.hops)}};
}

// Compares the options of all ranks.
result<void> compare_options(group const& ranks, exchange_options const& o) {
  std::vector<named_option> const mine = common_options(o);
  std::vector<std::int64_t> message;
  for (named_option const& option : mine) message.push_back(option.value);
  FERRY_TRY(auto const all, ranks.all_gather(std::as_bytes(std::span(message))));
  for (int r = 0; r < ranks.size(); ++r) {
    bytes const& theirs = all[static_cast<std::size_t>(r)];
    std::vector<std::int64_t> values(message.size());
    if (theirs.size() != message.size() * sizeof(std::int64_t))
      return fail(error_code::invalid_argument, "rank {} makes another exchange at the same time",
                  r);
    std::memcpy(values.data(), theirs.data(), theirs.size());
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (values[i] != mine[i].value)
        return fail(error_code::invalid_argument, "{} is {} on rank {}, but {} on rank {}",
                    mine[i].name, mine[i].value, ranks.rank(), values[i], r);
  }
  return {};
}

// What each rank is, for how rows are made for it.
result<void> learn_what_ranks_are(exchange_core& core) {
  FERRY_TRY(auto const all, announce(core.ranks, {core.where.kind(), core.where.lanes(),
                                                  flavour_of(core.where, core.options.fp8)}));
  // Options are not compared yet: what one rank refuses, another may not.
  FERRY_CHECK(core.ranks.agree(check_announced(all, core.options, core.ranks.rank())));
  for (announced const& rank : all)
    core.receives_fnuz.push_back(static_cast<std::byte>(rank.fp8 == fp8_code::fnuz));
  take_flavours(core.shape, core.receives_fnuz);
  return {};
}

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Blocks that wait must leave room for those that they wait for, and for compute.
result<void> check_blocks(exchange_core const& core) {
  device_rank const& rank = *core.on_device;
  gpu_kernels const& kernels = rank.kernels();
  int const waiting =
      core.options.blocks * core.options.num_microbatches * rank.ranks_on_this_device();
  for (gpu_kernel const k :
       {gpu_kernel::send, gpu_kernel::receive, gpu_kernel::give_back, gpu_kernel::gather}) {
    int resident = 0;
    if (int const status = kernels.resident_blocks(k, core.block_teams, &resident))
      return fail(error_code::device, "{} does not say how many blocks it holds: {}",
                  core.where.name(), kernels.describe(status));
    if (2 * waiting > resident)
      return fail(error_code::invalid_argument,
                  "{} blocks of {} teams may wait at once ({} blocks, {} slots, {} ranks on this "
                  "device); half of what {} holds is {}",
                  waiting, core.block_teams, core.options.blocks, core.options.num_microbatches,
                  rank.ranks_on_this_device(), core.where.name(), resident / 2);
  }
  return {};
}

result<void> make_device_rank(exchange_core& core) {
  std::size_t const flags = flag_bytes_of(core.window);
  FERRY_TRY(core.on_device,
            device_rank::make(core.ranks, core.where, flags, core.window.bytes() - flags,
                              core.window.offset(window_field::status)));
  FERRY_TRY(current_device const chosen, current_device::make(core.where));
  return core.ranks.agree(check_blocks(core));
}

// Teams of a block when the caller leaves it open: long steps keep more of them busy.
int default_block_teams(exchange_options const& options, gpu_kernels const& kernels) {
  return std::min(options.max_tokens > 1024 ? 8 : 4, kernels.max_teams);
}

result<void> choose_kernels(exchange_core& core) {
  exchange_options const& options = core.options;
  if (core.where.kind() == device_kind::cpu) {
    if (options.block_teams > 1)
      return fail(error_code::invalid_argument, "block_teams is {}; on the CPU a block is one team",
                  options.block_teams);
    FERRY_TRY(code_level const level, chosen_code_level());
    core.kernels = &cpu_kernels_for(level);
    core.relays = &relay_kernels_for(level);
    return {};
  }
  FERRY_TRY(gpu_kernels const* const kernels, kernels_of(core.where));
  if (!gpus_can_serve(core.shape))
    return fail(error_code::unsupported,
                "{} ranks with {} experts each: {} serves {} ranks, and {} bytes of a block's own "
                "memory where {} are needed",
                core.shape.ranks, core.shape.most_local_experts(), core.where.name(),
                max_mapped_ranks, gpu_block_memory::scratch_bytes, block_scratch_bytes(core.shape));
  if (options.block_teams > kernels->max_teams)
    return fail(error_code::invalid_argument, "block_teams is {}; a block of {} holds {} at most",
                options.block_teams, core.where.name(), kernels->max_teams);
  core.block_teams =
      options.block_teams ? options.block_teams : default_block_teams(options, *kernels);
  if (options.via == reach::network)
    return fail(error_code::unsupported,
                "via is network: the loopback network does not reach {}; only CPU ranks use it",
                core.where.name());
  return {};
}

result<void> check_local(exchange_core& core) {
  int const size = core.ranks.size();
  FERRY_CHECK(validate(core.options, size));
  core.shape =
      shape_of(core.options, core.ranks.rank(), size, core.where.kind() != device_kind::cpu);
  FERRY_TRY(core.layout, positions_of(core.options, core.shape));
  FERRY_CHECK(choose_kernels(core));
  FERRY_TRY(core.window, window_of(core.options, core.shape));
  return {};
}

// The waits of a CPU slot.
void give_waiter(exchange_core& core, microbatch::state& slot) {
  std::byte* const own = core.readable[static_cast<std::size_t>(core.shape.rank)];
  slot.waits = std::make_unique<waiter>(
      core.waits(slot.slot),
      reinterpret_cast<std::uint32_t*>(own + core.window.offset(window_field::asleep)),
      core.status_of(core.shape.rank), [&core](awaited const& what, bool expired, failure& found) {
        return look_at_peers(core, what, expired, found);
      });
}

// Returns the first one.
result<microbatch::state*> make_slots(exchange_core& core, std::vector<ferry::microbatch>& slots) {
  if (core.options.layers > 0)
    FERRY_CHECK(core.placed.make(core.options, core.shape, core.where, core.on_device.get()));
  microbatch::state* first = nullptr;
  for (int s = 0; s < core.options.num_microbatches; ++s) {
    auto slot = std::make_unique<microbatch::state>(core, s);
    FERRY_CHECK(slot->allocate());
    if (!core.on_device) give_waiter(core, *slot);
    if (!first) first = slot.get();
    slots.push_back(ferry::microbatch(std::move(slot)));
  }
  return first;
}

}  // namespace

waiter::settings exchange_core::waits(int slot) const {
  waiter::settings s;
  s.timeout = timeout();
  s.slot = slot;
  s.cannot_wake = cannot_wake;
  // Where there are fewer cores than threads, a thread that spins keeps the one it waits for from
  // running. Yielding lets that one run.
  if (ranks.ranks_on_this_machine() * options.blocks > usable_cores()) s.spin_turns = 0;
  return s;
}

result<exchange> make_exchange(group const& ranks, exchange_options const& options) {
  return make_exchange(ranks, device(), options);
}

result<exchange> make_exchange(group const& ranks, device const& where,
                               exchange_options const& options) {
  FERRY_CHECK(ranks.usable());
  auto state = std::make_unique<exchange::state>();
  exchange_core& core = state->core;
  core.ranks = ranks;
  core.where = where;
  core.options = options;
  FERRY_CHECK(ranks.agree(check_local(core)));
  FERRY_CHECK(learn_what_ranks_are(core));
  FERRY_CHECK(compare_options(ranks, options));
  FERRY_CHECK(choose_hops(core));
  for (int e = 0; e < core.shape.experts; ++e)
    core.owners.push_back(owner_of(e, ranks.size(), core.shape.experts));
  if (where.kind() == device_kind::cpu) {
    FERRY_TRY(core.windows, ranks.share_window(core.window.bytes()));
    FERRY_CHECK(reach_peers(core));
  } else {
    FERRY_CHECK(make_device_rank(core));
  }
  result<microbatch::state*> const first = make_slots(core, state->slots);
  FERRY_CHECK(ranks.agree(first ? result<void>{} : result<void>{first.error()}));
  if (core.on_device) FERRY_CHECK(probe_device_windows(core, **first));
  return exchange(std::move(state));
}

exchange::exchange(std::unique_ptr<state> s) : state_(std::move(s)) {}
exchange::exchange(exchange&&) noexcept = default;
exchange::~exchange() = default;

ferry::microbatch& exchange::microbatch(int index) {
  FERRY_EXPECTS(index >= 0 && index < num_microbatches(), "a slot of this exchange");
  return state_->slots[static_cast<std::size_t>(index)];
}
int exchange::num_microbatches() const {
  return static_cast<int>(state_->slots.size());
}
exchange_options const& exchange::options() const {
  return state_->core.options;
}
group const& exchange::ranks() const {
  return state_->core.ranks;
}
int exchange::first_expert(int rank) const {
  return state_->core.shape.first_expert(rank);
}

namespace {

error no_tables() {
  return fail(error_code::invalid_state,
              "an exchange without tables of experts: options.layers is 0");
}

}  // namespace

result<void> exchange::state::expect_tables() const {
  FERRY_CHECK(core.ranks.usable());
  return core.options.layers > 0 ? result<void>{} : result<void>{no_tables()};
}

result<void> exchange::write_tables(std::span<expert_table const> tables) {
  // Also where the group is broken: ranks that agreed on a change finish it, whoever died then.
  if (state_->core.options.layers == 0) return no_tables();
  for (ferry::microbatch const& slot : state_->slots) {
    ferry::microbatch::state const& s = *slot.state_;
    if (s.at != ferry::microbatch::state::stage::idle)
      return fail(error_code::invalid_state,
                  "tables are written between steps, but one is open on slot {}", s.slot);
    if (!s.last_queue) continue;
    auto const done = s.last_queue->wait(2 * state_->core.timeout());
    // A stream of the CPU that failed has ended: its kernels look at no table any more.
    if (!done && (state_->core.on_device || state_->core.ranks.usable())) return done;
  }
  result<void> const written = state_->core.placed.write(tables);
  // What a device did not take may be written by halves: no step may follow.
  if (!written && written.error().code != error_code::invalid_argument)
    state_->core.ranks.mark_broken(written.error());
  return written;
}

result<std::vector<std::uint64_t>> exchange::slot_loads() const {
  FERRY_CHECK(state_->expect_tables());
  return state_->core.placed.loads();
}

result<std::vector<std::int32_t>> exchange::sampled_choices() const {
  FERRY_CHECK(state_->expect_tables());
  return state_->core.placed.take_samples();
}

exchange_counters exchange::counters() const {
  using tallies = std::array<std::uint64_t, static_cast<std::size_t>(tally::count_)>;
  exchange_counters sum;
  for (ferry::microbatch const& slot : state_->slots) {
    std::uint64_t* const there = slot.state_->frame.memory.tallies;
    tallies seen{};
    std::uint64_t steps = slot.state_->steps;
    if (device_rank const* const rank = state_->core.on_device.get()) {
      // Replays are known there alone: the gather's clock counts them.
      step_frame const& frame = slot.state_->frame;
      std::uint64_t const* const ticks =
          frame.memory.ticks + static_cast<int>(phase::gather) * state_->core.options.blocks;
      result<void> read = rank->read(seen.data(), there, sizeof seen);
      if (read) read = rank->read(&steps, ticks, sizeof steps);
      if (!read) state_->core.ranks.mark_broken(read.error());
      steps /= frame.shape.step_epochs();
    } else {
      // Other threads may be running steps of other slots.
      for (std::size_t t = 0; t < seen.size(); ++t)
        seen[t] = std::atomic_ref(there[t]).load(std::memory_order_relaxed);
    }
    auto const of = [&](tally t) { return seen[static_cast<std::size_t>(t)]; };
    sum.steps += steps;
    sum.dispatch_bytes += of(tally::sent_bytes);
    sum.dispatch_self_bytes += of(tally::sent_self_bytes);
    sum.combine_bytes += of(tally::returned_bytes);
    sum.combine_self_bytes += of(tally::returned_self_bytes);
    sum.ids_out_of_range += of(tally::ids_out_of_range);
    sum.rows_received += of(tally::rows_received);
  }
  return sum;
}

}  // namespace ferry
