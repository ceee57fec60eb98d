// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "exchange/relay_slot.hpp"

#include "exchange/exchange_state.hpp"

namespace ferry {
namespace {

enum class field { tokens, maps, choices, ticks, ways, flavours, count_ };

field_layout<field> lay_out(exchange_shape const& s, relay_shape const& relay, int blocks) {
  auto const n = [](auto x) { return static_cast<std::size_t>(x); };
  constexpr std::size_t line = 64;
  field_layout<field> l;
  l.add(field::tokens, n(relay.sources), 4, line);
  l.add(field::maps, n(relay.sources) * n(s.round_chunks()), 2, line);
  l.add(field::choices, n(relay.sources) * n(s.max_tokens) * n(s.topk), 4, line);
  l.add(field::ticks, n(num_phases) * n(blocks), 8, line);
  l.add(field::ways, n(s.experts), 4, line);
  l.add(field::flavours, n(s.ranks), 1, line);
  return l;
}

}  // namespace

result<relay_slot> relay_slot::make(exchange_core const& core, int slot, step_frame const& frame) {
  exchange_shape const& s = core.shape;
  relay_slot made;
  relay_frame& f = made.frame;
  f.shape = core.paths->shape;
  f.flags = lay_out_relay_flags(s, f.shape);
  f.slot = lay_out_relay(s, f.shape);
  f.flags_offset = core.window.offset(window_field::relay_flags, static_cast<std::size_t>(slot));
  f.slot_offset = core.window.offset(window_field::relay_rows, static_cast<std::size_t>(slot));
  f.tables = core.paths->view();
  auto const l = lay_out(s, f.shape, core.options.blocks);
  FERRY_TRY(made.memory, buffer::allocate(l.bytes()));
  auto const place = [&]<class T>(T*& pointer, field of) {
    pointer = reinterpret_cast<T*>(made.memory.data() + l.offset(of));
  };
  place(f.memory.tokens, field::tokens);
  place(f.memory.maps, field::maps);
  place(f.memory.choices, field::choices);
  made.by_node = made.forwarding = frame;
  place(made.forwarding.memory.ticks, field::ticks);
  std::int32_t* ways = nullptr;
  place(ways, field::ways);
  for (int e = 0; e < s.experts; ++e)
    ways[e] = f.tables.out[core.owners[static_cast<std::size_t>(e)]].rank;
  made.by_node.memory.owners = ways;
  // To a relay scales go as for OCP codes; it turns them into what each rank wants.
  std::byte* flavours = nullptr;
  place(flavours, field::flavours);
  for (int r = 0; r < s.ranks; ++r)
    flavours[r] =
        f.tables.out[r].direct() ? core.receives_fnuz[static_cast<std::size_t>(r)] : std::byte{0};
  made.by_node.memory.receives_fnuz = flavours;
  return made;
}

}  // namespace ferry
