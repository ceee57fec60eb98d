// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Private memory of a slot, from one field list.

#include "exchange/exchange_state.hpp"

#include <algorithm>

namespace ferry {
namespace {

enum class field {
  choices,
  weights,
  num_tokens,
  expert_counts,
  seen_tokens,
  rounds,
  maps,
  plan,
  plan_weights,
  cursors,
  starts,
  counts,
  wanted,
  end,
  index,
  rows,
  scales,
  ticks,
  tallies,
  owners,
  receives_fnuz,
  scratch,
  count_
};

field_layout<field> lay_out(step_frame const& frame, int blocks, int block_teams,
                            std::size_t scratch_stride) {
  exchange_shape const& s = frame.shape;
  auto const n = [](auto x) { return static_cast<std::size_t>(x); };
  std::size_t const choices = n(s.max_tokens) * n(s.topk);
  std::size_t const received = n(s.ranks) * choices;
  std::size_t const experts = n(s.most_local_experts());
  std::size_t const capacity = n(frame.layout.capacity);
  bool const in_place = frame.layout.in_place;
  constexpr std::size_t line = 64;
  field_layout<field> l;
  l.add(field::choices, choices, 4, line);
  l.add(field::weights, choices, 4, line);
  l.add(field::num_tokens, 1, 4, line);
  l.add(field::expert_counts, n(s.experts), 4, line);
  l.add(field::seen_tokens, n(s.ranks), 4, line);
  l.add(field::rounds, 1, 4, line);
  l.add(field::maps, n(s.ranks) * n(s.step_chunks()), 2, line);
  l.add(field::plan, received, 4, line);
  l.add(field::plan_weights, received, 4, line);
  l.add(field::cursors, n(std::max(blocks, s.ranks)), 8 * experts, line);
  l.add(field::starts, experts, 4, line);
  l.add(field::counts, experts, 4, line);
  l.add(field::wanted, experts, 4, line);
  l.add(field::end, 1, 4, line);
  l.add(field::index, in_place ? capacity : 0, 4, line);
  l.add(field::rows, in_place ? 0 : capacity, round_up(s.row_bytes, row_align), 4096);
  l.add(field::scales, in_place ? 0 : capacity, round_up(s.scale_bytes, std::size_t{4}), line);
  l.add(field::ticks, n(num_phases) * n(blocks), 8, line);
  l.add(field::tallies, n(static_cast<int>(tally::count_)), 8, line);
  l.add(field::owners, n(s.experts), 4, line);
  l.add(field::receives_fnuz, n(s.ranks), 1, line);
  l.add(field::scratch, n(blocks) * n(block_teams), scratch_stride, line);
  return l;
}

}  // namespace

result<void> microbatch::state::allocate() {
  frame.shape = core.shape;
  frame.slot = lay_out_slot(core.shape);
  frame.flags = lay_out_flags(core.shape);
  frame.flags_offset = core.window.offset(window_field::flags, static_cast<std::size_t>(slot));
  frame.slot_offset = core.window.offset(window_field::rows, static_cast<std::size_t>(slot));
  frame.layout = core.layout;
  frame.placed = core.placed.view(slot);
  scratch_stride = round_up(send_rows::scratch_bytes(core.shape), std::size_t{64});
  auto const l = lay_out(frame, core.options.blocks, core.block_teams, scratch_stride);
  if (core.on_device) {
    FERRY_TRY(on_device, core.where.allocate(memory_kind::local, l.bytes()));
  } else {
    FERRY_TRY(memory, buffer::allocate(l.bytes()));
  }
  std::byte* const base = core.on_device ? on_device.data() : memory.data();
  step_memory& m = frame.memory;
  auto const place = [&]<class T>(T*& pointer, field f) {
    pointer = reinterpret_cast<T*>(base + l.offset(f));
  };
  place(m.choices, field::choices);
  place(m.weights, field::weights);
  place(m.num_tokens, field::num_tokens);
  place(m.expert_counts, field::expert_counts);
  place(m.seen_tokens, field::seen_tokens);
  place(m.rounds, field::rounds);
  place(m.maps, field::maps);
  place(m.plan, field::plan);
  place(m.plan_weights, field::plan_weights);
  place(m.cursors, field::cursors);
  place(m.starts, field::starts);
  place(m.counts, field::counts);
  place(m.wanted, field::wanted);
  place(m.end, field::end);
  place(m.index, field::index);
  place(m.rows, field::rows);
  place(m.scales, field::scales);
  place(m.ticks, field::ticks);
  place(m.tallies, field::tallies);
  place(scratch, field::scratch);
  m.row_stride = l.stride(field::rows);
  m.scale_stride = l.stride(field::scales);
  if (!core.on_device) {
    m.owners = core.owners.data();
    m.receives_fnuz = core.receives_fnuz.data();
    if (!core.paths) return {};
    FERRY_TRY(relay, relay_slot::make(core, slot, frame));
    return {};
  }
  place(m.owners, field::owners);
  place(m.receives_fnuz, field::receives_fnuz);
  FERRY_CHECK(core.on_device->write(base + l.offset(field::owners), core.owners.data(),
                                    core.owners.size() * sizeof core.owners[0]));
  return core.on_device->write(base + l.offset(field::receives_fnuz), core.receives_fnuz.data(),
                               core.receives_fnuz.size());
}

}  // namespace ferry
