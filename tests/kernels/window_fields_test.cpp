// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/window_fields.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace {

using namespace ferry;

struct range {
  std::size_t begin, end;
};

exchange_shape some_shape(int seed) {
  exchange_shape s;
  s.ranks = 1 + seed % 9;
  s.experts = 1 + seed * 7 % 60;
  s.topk = 1 + seed % 32;
  s.max_tokens = s.round_tokens = 1 + seed * 5 % 70;
  s.chunk_tokens = 1 << seed % 5;
  s.per_choice = seed % 2;
  s.row_bytes = static_cast<std::size_t>(1 + seed * 13 % 999);
  s.scale_bytes = static_cast<std::size_t>(seed % 3 * 7);
  s.home_bytes = static_cast<std::size_t>(2 + seed * 11 % 500);
  s.home_scale_bytes = static_cast<std::size_t>(seed % 4 * 4);
  return s;
}

// Everything that one rank writes into a slot of a peer's window, by byte ranges.
std::vector<range> ranges_of(exchange_shape const& s, slot_layout const& l) {
  std::vector<range> all;
  auto const add = [&](slot_field f, std::size_t item, std::size_t bytes, std::size_t from = 0) {
    all.push_back({l.offset(f, item) + from, l.offset(f, item) + from + bytes});
  };
  auto const ranks = static_cast<std::size_t>(s.ranks);
  auto const tokens = static_cast<std::size_t>(s.round_tokens);
  auto const words = 1 + static_cast<std::size_t>(s.round_chunks());
  for (std::size_t i = 0; i < ranks * tokens; ++i) {
    add(slot_field::rows, i, s.row_bytes);
    add(slot_field::scales, i, s.scale_bytes);
    add(slot_field::routes, i, route_bytes(s.topk));
  }
  std::size_t const home =
      s.per_choice ? tokens * static_cast<std::size_t>(s.topk) : ranks * tokens;
  for (std::size_t i = 0; i < home; ++i) {
    add(slot_field::returned, i, s.home_bytes);
    add(slot_field::returned_scales, i, s.home_scale_bytes);
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    add(slot_field::arrived, r, 8 * words);
    add(slot_field::back, r, 8 * words);
    add(slot_field::counts, r, 4 * static_cast<std::size_t>(s.most_local_experts()));
  }
  return all;
}

TEST(window_fields, never_overlap_and_stay_inside) {
  for (int seed = 0; seed < 200; ++seed) {
    exchange_shape const s = some_shape(seed);
    slot_layout const l = lay_out_slot(s);
    std::vector<range> all = ranges_of(s, l);
    std::erase_if(all, [](range const& r) { return r.begin == r.end; });
    std::sort(all.begin(), all.end(), [](range a, range b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < all.size(); ++i) ASSERT_LE(all[i - 1].end, all[i].begin) << seed;
    ASSERT_LE(all.back().end, l.bytes());
  }
}

TEST(window_fields, keep_the_words_of_different_writers_on_lines_of_their_own) {
  for (int seed = 0; seed < 200; ++seed) {
    exchange_shape const s = some_shape(seed);
    slot_layout const l = lay_out_slot(s);
    for (std::size_t r = 0; r < static_cast<std::size_t>(s.ranks); ++r) {
      ASSERT_EQ(l.offset(slot_field::arrived, r) % flag_line, 0u);
      ASSERT_EQ(l.offset(slot_field::back, r) % 8, 0u);
      ASSERT_EQ(l.offset(slot_field::counts, r) % 4, 0u);
      std::size_t const end =
          l.offset(slot_field::counts, r) + 4 * static_cast<std::size_t>(s.most_local_experts());
      ASSERT_LE(end, l.offset(slot_field::arrived, r) + l.stride(slot_field::arrived));
    }
    ASSERT_EQ(l.offset(slot_field::rows) % row_align, 0u);
    ASSERT_EQ(l.stride(slot_field::rows) % row_align, 0u);
    ASSERT_EQ(l.stride(slot_field::returned) % row_align, 0u);
    ASSERT_EQ(l.offset(slot_field::scales) % 4, 0u);
    ASSERT_EQ(l.stride(slot_field::scales) % 4, 0u);
  }
}

TEST(window_fields, put_slots_behind_what_they_share) {
  exchange_shape const s = some_shape(5);
  window_layout const w = lay_out_window(s, 4);
  EXPECT_GE(w.offset(window_field::asleep), sizeof(status_record));
  EXPECT_GE(w.offset(window_field::slots),
            w.offset(window_field::asleep) + 4 * static_cast<std::size_t>(s.ranks));
  EXPECT_EQ(w.offset(window_field::slots) % flag_line, 0u);
  EXPECT_GE(w.stride(window_field::slots), lay_out_slot(s).bytes());
  EXPECT_EQ(w.stride(window_field::slots) % flag_line, 0u);
  EXPECT_EQ(w.bytes(), w.offset(window_field::slots, 4));
}

}  // namespace
