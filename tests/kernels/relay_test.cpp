// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/relay.hpp>

#include <gtest/gtest.h>

#include <set>

namespace {

using namespace ferry;

TEST(relay, has_a_place_of_its_own_for_every_row_and_word) {
  for (bool const per_choice : {false, true})
    for (int sources : {1, 3})
      for (int members : {1, 2, 4}) {
        exchange_shape s;
        s.topk = 3;
        s.max_tokens = s.round_tokens = 5;
        s.chunk_tokens = 2;
        s.per_choice = per_choice;
        s.row_bytes = 40;
        s.home_bytes = 24;
        relay_frame f;
        f.shape = {sources, members};
        f.flags = lay_out_relay_flags(s, f.shape);
        f.slot = lay_out_relay(s, f.shape);
        std::set<std::size_t> records, rows, words;
        for (int i = 0; i < sources; ++i) {
          for (int token = 0; token < s.round_tokens; ++token) {
            EXPECT_TRUE(records.insert(relay_frame::record(s, i, token)).second);
            for (int n = 0; n < (per_choice ? s.topk : members); ++n)
              EXPECT_TRUE(rows.insert(f.home_row(s, i, n, token)).second);
          }
          for (int c = -1; c < s.round_chunks(); ++c) {
            EXPECT_TRUE(words.insert(chunk_word(f.arrived_line(i), c)).second);
            for (int j = 0; j < members; ++j)
              EXPECT_TRUE(words.insert(chunk_word(f.back_line(i, j), c)).second);
          }
        }
        EXPECT_EQ(*records.rbegin() + 1, f.slot[relay_field::rows].items);
        EXPECT_EQ(*rows.rbegin() + 1, f.slot[relay_field::returned].items);
        EXPECT_LE(*words.rbegin() + 8, f.flags.bytes());
      }
}

TEST(relay, is_asked_only_between_nodes) {
  EXPECT_TRUE((way{3, -1}.direct()));
  EXPECT_FALSE((way{3, 0}.direct()));
}

}  // namespace
