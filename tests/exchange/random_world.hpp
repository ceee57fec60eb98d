// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Worlds drawn from a seed, over everything that options can say.
#pragma once

#include "exchange/oracle.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace ferry::oracle {

/// FERRY_TEST_EFFORT=n multiplies how many worlds a property test draws.
inline int effort(int usual) {
  char const* const wanted = std::getenv("FERRY_TEST_EFFORT");
  int const times = wanted ? std::atoi(wanted) : 1;
#if defined(FERRY_CHECKED)
  usual = (usual + 1) / 2;  // debug and sanitizer builds are many times slower
#endif
  return usual * (times > 0 ? times : 1);
}

inline void choose_formats(world& w, dice& from) {
  static constexpr dtype types[] = {dtype::f32, dtype::bf16, dtype::fp16};
  static constexpr wire wires[] = {wire::f32,          wire::bf16,      wire::fp16,  wire::fp8_e4m3,
                                   wire::fp8_e4m3fnuz, wire::fp8_ue8m0, wire::opaque};
  static constexpr wire home[] = {wire::f32, wire::bf16, wire::fp16, wire::fp8_e4m3,
                                  wire::fp8_e4m3fnuz};
  exchange_options& o = w.options;
  o.tokens = pick_one(from, types);
  o.wire = pick_one(from, wires);
  bool const all_f32 = one_in(from, 4);  // so that the sum in whole numbers is checked, too
  o.expert_rows = all_f32 ? dtype::f32 : pick_one(from, types);
  o.combine_wire = all_f32 ? wire::f32 : pick_one(from, home);
  o.output = all_f32 ? dtype::f32 : pick_one(from, types);
  o.ids = one_in(from, 2) ? id_type::int64 : id_type::int32;
  if (o.wire == wire::opaque) {
    o.opaque_row_bytes = static_cast<std::size_t>(pick(from, 1, 300));
    o.opaque_scale_bytes = static_cast<std::size_t>(one_in(from, 2) ? 0 : pick(from, 1, 40));
  }
}

inline void choose_sizes(world& w, dice& from) {
  static constexpr int ks[] = {1, 2, 2, 3, 4, 5, 6, 8, 8, 9, 16, 31, 32};
  static constexpr int widths[] = {1, 2, 3, 7, 16, 33, 127, 128, 129, 200, 256, 257, 384, 500};
  exchange_options& o = w.options;
  w.ranks = pick(from, 1, 9);
  o.num_experts = one_in(from, 4) ? pick(from, 1, w.ranks) : pick(from, 1, 70);
  o.topk = pick_one(from, ks);
  o.hidden = one_in(from, 40) ? 2880 : pick_one(from, widths);
  o.max_tokens = pick(from, 1, o.hidden > 400 || o.topk > 9 ? 8 : 40);
  static constexpr int chunks[] = {0, 1, 2, 4, 8, 16};
  o.chunk_tokens = pick_one(from, chunks);
  o.blocks = one_in(from, 2) ? 1 : pick(from, 2, 3);
  // More blocks than ranks share the sources between them.
  if (w.ranks <= 2 && one_in(from, 3)) o.blocks = pick(from, 2, 7);
  w.hot = one_in(from, 4);
  w.bad_ids = !one_in(from, 4);
}

inline void choose_layout(world& w, dice& from) {
  static constexpr layout layouts[] = {layout::grouped, layout::grouped, layout::padded,
                                       layout::in_place};
  static constexpr int aligns[] = {1, 1, 2, 3, 8, 16, 100};
  exchange_options& o = w.options;
  o.layout = pick_one(from, layouts);
  o.reduction = one_in(from, 2) ? reduction::per_choice : reduction::per_rank;
  o.row_align = pick_one(from, aligns);
  if (o.layout == layout::padded || one_in(from, 6))
    o.capacity = pick(from, 1, w.ranks * o.max_tokens);  // often too few
  if (o.layout != layout::in_place && one_in(from, 3)) o.round_tokens = pick(from, 1, o.max_tokens);
}

inline world random_world(std::uint64_t seed) {
  dice from(seed);
  world w;
  choose_formats(w, from);
  choose_sizes(w, from);
  choose_layout(w, from);
  exchange_options& o = w.options;
  o.num_microbatches = pick(from, 1, 4);
  if (one_in(from, 3)) {
    o.via = reach::network;
    o.faults = {.seed = seed,
                .delay = pick(from, 0, 20),
                .longest_delay = std::chrono::microseconds(100),
                .try_again = pick(from, 0, 300),
                .queue_depth = static_cast<std::size_t>(pick_one(from, {1, 2, 7, 1024}))};
  }
  for (int r = 0; r < w.ranks; ++r) w.fnuz.push_back(one_in(from, 2));
  for (int i = 0; i < 5; ++i) w.steps.push_back(random_step(w, from));
  return w;
}

/// The options of one rank: what receivers choose for themselves may differ.
inline exchange_options options_of(world const& w, int rank) {
  exchange_options o = w.options;
  if (w.is_fnuz(rank)) o.fp8 = fp8_flavour::fnuz;
  o.faults.seed += static_cast<std::uint64_t>(rank);
  return o;
}

inline std::string describe(world const& w) {
  exchange_options const& o = w.options;
  return fmt::format(
      "{} ranks, {} experts, top-{}, hidden {}, {} tokens in rounds of {} and chunks of {}, {} "
      "to {} via {}, {} home, expert rows {}, output {}, layout {}, align {}, capacity {}, "
      "reduction {}, {} blocks, {} slots, opaque {}+{}",
      w.ranks, o.num_experts, o.topk, o.hidden, o.max_tokens, o.round_tokens, o.chunk_tokens,
      to_string(o.tokens), to_string(o.wire), static_cast<int>(o.via), to_string(o.combine_wire),
      to_string(o.expert_rows), to_string(o.output), static_cast<int>(o.layout), o.row_align,
      o.capacity, static_cast<int>(o.reduction), o.blocks, o.num_microbatches, o.opaque_row_bytes,
      o.opaque_scale_bytes);
}

}  // namespace ferry::oracle
