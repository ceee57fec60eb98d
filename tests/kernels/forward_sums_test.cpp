// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/forward_sums.hpp>

#include "kernels/sent_step.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

// Also to sources that brought nothing (R10).
TEST(forward_sums, give_credit_to_every_source_that_the_relay_serves) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    world const w = in_two_hops(some_nodes(seed, wire::bf16));
    sent_step sent(w);
    sent.forward();
    for (int r = 0; r < w.ranks; ++r)
      sent.ranks.run(r, forward_sums{sent.relay(r).forwarding, sent.relay(r).frame, true});
    ASSERT_FALSE(sent.ranks.failed());
    for (int s = 0; s < w.ranks; ++s) {
      relay_tables const& t = sent.relay(s).frame.tables;
      for (int d = 0; d < w.ranks; ++d) {
        bool served = false;
        for (int i = 0; i < w.ranks; ++i)
          served = served || (t.out[i].rank == d && !t.out[i].direct());
        std::size_t const word = sent.ranks.rank(s).frame().line_head(flag_field::back, d);
        ASSERT_EQ(sent.ranks.rank(s).word(word), served ? 1u : 0u)
            << "rank " << d << " to rank " << s << ", seed " << seed;
      }
    }
  }
}

// What ranks return is put there by hand: whole numbers, of which every sum tells its parts.
TEST(forward_sums, add_the_ranks_of_a_node_that_serve_a_token) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    world w = in_two_hops(some_nodes(seed, wire::f32));
    w.options.combine_wire = wire::f32;
    sent_step sent(w);
    sent.forward();
    int const hidden = w.options.hidden;
    auto const value = [](int d, int token, int column) {
      return static_cast<float>((1 << d) * 64 + token + column % 7);
    };
    auto const serves = [&](int d, rank_step const& s, int token) {
      for (int k = 0; k < w.options.topk; ++k) {
        std::int64_t const id = s.ids[static_cast<std::size_t>(token * w.options.topk + k)];
        if (w.is_expert(id) && w.rank_of(id) == d) return true;
      }
      return false;
    };
    for (int f = 0; f < w.ranks; ++f) {
      rank_memory& at = sent.ranks.rank(f);
      relay_frame const& relay = sent.relay(f).frame;
      for (int i = 0; i < relay.tables.num_sources; ++i)
        for (int j = 0; j < relay.tables.num_members; ++j) {
          for (int c = 0; c < at.frame().shape.round_chunks(); ++c)
            at.word(chunk_word(relay.back_line(i, j), c)) = 1;
          for (int token = 0; token < w.options.max_tokens; ++token)
            for (int column = 0; column < hidden; ++column)
              reinterpret_cast<float*>(
                  at.window.data() +
                  relay.at(relay_field::returned,
                           relay.home_row(at.frame().shape, i, j, token)))[column] =
                  value(relay.tables.members[j], token, column);
        }
    }
    for (int r = 0; r < w.ranks; ++r)
      sent.ranks.run(r, forward_sums{sent.relay(r).forwarding, sent.relay(r).frame});
    ASSERT_FALSE(sent.ranks.failed());
    for (int s = 0; s < w.ranks; ++s) {
      rank_memory& at = sent.ranks.rank(s);
      rank_step const& brought = w.steps[0].brought[static_cast<std::size_t>(s)];
      for (int f = 0; f < w.ranks; ++f)
        for (int token = 0; token < brought.tokens; ++token) {
          float wanted = 0;
          for (int d = 0; d < w.ranks; ++d)
            if (w.brought_home_by(d, s) == f && d / w.ranks_per_node != s / w.ranks_per_node &&
                serves(d, brought, token))
              wanted += value(d, token, 0);
          if (wanted == 0) continue;
          auto const* const row = reinterpret_cast<float const*>(
              at.window.data() +
              at.frame().at(slot_field::returned, home_row(at.frame(), f, token)));
          ASSERT_EQ(row[0], wanted) << "token " << token << " of rank " << s << ", seed " << seed;
          int const chunk = token / at.frame().shape.chunk_tokens;
          ASSERT_EQ(at.word(at.frame().chunk_flag(flag_field::back, f, chunk)), 1u);
        }
    }
  }
}

}  // namespace
