// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/forward_rows.hpp>

#include "kernels/sent_step.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

// All that a source writes into its inbox in one hop, byte by byte, also what nobody reads.
void expect_same_inboxes(all_ranks& direct, all_ranks& relayed, int r, std::uint64_t seed) {
  step_frame const& f = direct.rank(r).frame();
  step_frame const& g = relayed.rank(r).frame();
  std::byte const* const a = direct.rank(r).window.data();
  std::byte const* const b = relayed.rank(r).window.data();
  for (slot_field field :
       {slot_field::rows, slot_field::scales, slot_field::routes, slot_field::counts}) {
    std::size_t const bytes = f.slot[field].items * f.slot[field].stride;
    EXPECT_EQ(std::memcmp(a + f.at(field), b + g.at(field), bytes), 0)
        << "field " << static_cast<int>(field) << " of rank " << r << ", seed " << seed;
  }
  for (int s = 0; s < f.shape.ranks; ++s)
    for (int c = -1; c < f.shape.round_chunks(); ++c)
      EXPECT_EQ(direct.rank(r).word(f.chunk_flag(flag_field::arrived, s, c)),
                relayed.rank(r).word(g.chunk_flag(flag_field::arrived, s, c)))
          << "chunk " << c << " of rank " << s << " on rank " << r << ", seed " << seed;
}

TEST(forward_rows, leave_every_inbox_as_one_hop_does) {
  constexpr wire wires[] = {wire::f32,       wire::bf16,         wire::fp16,  wire::fp8_e4m3,
                            wire::fp8_ue8m0, wire::fp8_e4m3fnuz, wire::opaque};
  for (std::uint64_t seed = 1; seed <= 70; ++seed) {
    world const one = some_nodes(seed, wires[seed % 7]);
    sent_step direct(one), relayed(in_two_hops(one));
    relayed.forward();
    ASSERT_FALSE(direct.ranks.failed() || relayed.ranks.failed()) << seed;
    for (int r = 0; r < one.ranks; ++r) expect_same_inboxes(direct.ranks, relayed.ranks, r, seed);
    if (HasFailure()) return;
  }
}

}  // namespace
