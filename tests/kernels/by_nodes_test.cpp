// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/by_nodes.hpp>

#include "kernels/sent_step.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace ferry;
using namespace ferry::oracle;

std::uint64_t map_in(std::uint64_t word) {
  return word & 0xFFFF;
}

TEST(by_nodes, send_a_record_once_to_each_node_that_needs_it) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    world const one = some_nodes(seed, wire::f32);
    sent_step direct(one), relayed(in_two_hops(one));
    step_frame const& f = direct.ranks.rank(0).frame();
    for (int s = 0; s < one.ranks; ++s) {
      relay_tables const& t = relayed.relay(s).frame.tables;
      int const tokens = one.steps[0].brought[static_cast<std::size_t>(s)].tokens;
      for (int c = 0; c < ceil_div(tokens, f.shape.chunk_tokens); ++c)
        for (int relay = 0; relay < one.ranks; ++relay) {
          std::uint64_t of_node = 0;
          int place = -1;
          for (int d = 0; d < one.ranks; ++d)
            if (t.out[d].rank == relay && !t.out[d].direct()) {
              of_node |= map_in(direct.ranks.rank(d).word(f.chunk_flag(flag_field::arrived, s, c)));
              place = t.out[d].place;
            }
          if (place < 0) continue;
          std::uint64_t const word = relayed.ranks.rank(relay).word(
              chunk_word(relayed.relay(relay).frame.arrived_line(place), c));
          ASSERT_EQ(map_in(word), of_node)
              << "chunk " << c << " of rank " << s << ", seed " << seed;
          ASSERT_EQ(word >> epoch_shift(flag::arrived), 1u);
        }
    }
  }
}

TEST(by_nodes, leave_inboxes_of_other_nodes_to_their_relays) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    world const w = in_two_hops(some_nodes(seed, wire::bf16));
    sent_step sent(w);
    for (int d = 0; d < w.ranks; ++d) {
      rank_memory& at = sent.ranks.rank(d);
      step_frame const& f = at.frame();
      auto const untouched = [&](std::size_t offset, std::size_t bytes) {
        std::byte const* const first = at.window.data() + offset;
        return std::all_of(first, first + bytes, [](std::byte b) { return b == std::byte{0}; });
      };
      for (int s = 0; s < w.ranks; ++s) {
        if (sent.relay(d).frame.tables.in[s].direct()) continue;
        auto const tokens = static_cast<std::size_t>(f.shape.round_tokens);
        for (slot_field field : {slot_field::rows, slot_field::routes})
          ASSERT_TRUE(untouched(f.at(field, s, 0), tokens * f.slot.stride(field))) << seed;
        ASSERT_TRUE(untouched(f.line_head(flag_field::arrived, s),
                              8 * (1 + static_cast<std::size_t>(f.shape.round_chunks()))));
      }
    }
  }
}

}  // namespace
