// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A step that has been sent, in one hop or in two, with all ranks in one thread.
#pragma once

#include "kernels/all_ranks.hpp"

namespace ferry::oracle {

/// All ranks of a world after the sending half of its first step.
struct sent_step {
  explicit sent_step(world const& w) : ranks(w, code_level::v2) {
    dice from(7);
    for (int r = 0; r < w.ranks; ++r) {
      brought.push_back(std::make_unique<brought_memory>(
          w, w.steps[0].brought[static_cast<std::size_t>(r)], from));
      send_rows sending = ranks.sending(r, brought.back()->input);
      if (!takes_two()) {
        ranks.run(r, sending);
        continue;
      }
      sending.frame = relay(r).by_node;
      ranks.run(r, by_nodes<send_rows>{sending, relay(r).frame});
    }
  }
  bool takes_two() { return ranks.rank(0).slot->relay.has_value(); }
  relay_slot const& relay(int r) { return *ranks.rank(r).slot->relay; }
  void forward() {
    for (int r = 0; r < ranks.size(); ++r)
      ranks.run(r, forward_rows{relay(r).forwarding, relay(r).frame});
  }

  all_ranks ranks;
  std::vector<std::unique_ptr<brought_memory>> brought;
};

/// Nodes of any size, with steps that take one hop.
inline world some_nodes(std::uint64_t seed, wire sent) {
  dice from(seed);
  world w;
  w.ranks = pick(from, 2, 7);
  w.ranks_per_node = pick(from, 1, w.ranks - 1);
  exchange_options& o = w.options;
  o = {.num_experts = pick(from, w.ranks, 40),
       .topk = pick(from, 1, 8),
       .hidden = pick(from, 1, 300),
       .max_tokens = pick(from, 1, 30)};
  o.tokens = dtype::f32;
  o.wire = sent;
  if (sent == wire::opaque) o.opaque_row_bytes = 77, o.opaque_scale_bytes = 5;
  o.blocks = pick(from, 1, 5);
  o.num_microbatches = 1;
  for (int r = 0; r < w.ranks; ++r) w.fnuz.push_back(one_in(from, 2));
  w.read_the_same();
  w.steps.push_back(random_step(w, from));
  return w;
}

inline world in_two_hops(world w) {
  w.options.hops = hops::two;
  return w;
}

}  // namespace ferry::oracle
