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

// Everything that ranks write into a slot's rows, by byte ranges.
std::vector<range> ranges_of(exchange_shape const& s, slot_layout const& l) {
  std::vector<range> all;
  auto const add = [&](slot_field f, std::size_t item, std::size_t bytes, std::size_t from = 0) {
    all.push_back({l.offset(f, item) + from, l.offset(f, item) + from + bytes});
  };
  auto const ranks = static_cast<std::size_t>(s.ranks);
  auto const tokens = static_cast<std::size_t>(s.round_tokens);
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
    flag_layout const l = lay_out_flags(s);
    std::size_t const words = 8 * (1 + static_cast<std::size_t>(s.round_chunks()));
    ASSERT_EQ(l.stride(flag_field::arrived) % flag_line, 0u);
    for (std::size_t r = 0; r < static_cast<std::size_t>(s.ranks); ++r) {
      ASSERT_EQ(l.offset(flag_field::arrived, r) % flag_line, 0u);
      ASSERT_EQ(l.offset(flag_field::back, r), l.offset(flag_field::arrived, r) + words);
      ASSERT_LE(l.offset(flag_field::back, r) + words,
                l.offset(flag_field::arrived, r) + l.stride(flag_field::arrived));
    }
    ASSERT_EQ(l.bytes(), l.stride(flag_field::arrived) * static_cast<std::size_t>(s.ranks));
  }
}

TEST(window_fields, start_rows_where_lanes_can_move_16_bytes) {
  for (int seed = 0; seed < 200; ++seed) {
    slot_layout const l = lay_out_slot(some_shape(seed));
    for (slot_field f : {slot_field::rows, slot_field::returned}) {
      ASSERT_EQ(l.offset(f) % part_align, 0u);
      ASSERT_EQ(l.stride(f) % row_align, 0u);
    }
    for (slot_field f : {slot_field::scales, slot_field::returned_scales, slot_field::counts}) {
      ASSERT_EQ(l.offset(f) % 4, 0u);
      ASSERT_EQ(l.stride(f) % 4, 0u);
    }
  }
}

TEST(window_fields, put_all_flags_before_all_rows) {
  exchange_shape const s = some_shape(5);
  window_layout const w = lay_out_window(s, 4);
  EXPECT_EQ(w.offset(window_field::status), 0u);
  EXPECT_GE(w.offset(window_field::asleep), sizeof(status_record));
  EXPECT_GE(w.offset(window_field::flags),
            w.offset(window_field::asleep) + 4 * static_cast<std::size_t>(s.ranks));
  EXPECT_EQ(w.offset(window_field::flags) % flag_line, 0u);
  EXPECT_GE(w.stride(window_field::flags), lay_out_flags(s).bytes());
  EXPECT_EQ(w.stride(window_field::flags) % flag_line, 0u);
  EXPECT_GE(flag_bytes_of(w), w.offset(window_field::flags, 4));
  EXPECT_EQ(flag_bytes_of(w) % part_align, 0u) << "a part in memory of its own stays aligned";
  EXPECT_GE(w.stride(window_field::rows), lay_out_slot(s).bytes());
  EXPECT_EQ(w.stride(window_field::rows) % part_align, 0u);
  EXPECT_EQ(w.bytes(), flag_bytes_of(w) + 4 * w.stride(window_field::rows));
}

// What a window may cost beside the records and rows themselves: 64 bytes for each rank, chunk and
// slot, and one page.
TEST(window_fields, cost_little_beside_the_rows) {
  for (int ranks : {1, 2, 8, 64})
    for (int tokens : {1, 8, 128, 4096})
      for (int chunk : {1, 4, 16})
        for (int slots : {1, 2}) {
          exchange_shape s;
          s.ranks = ranks;
          s.experts = 256;
          s.topk = 8;
          s.max_tokens = s.round_tokens = tokens;
          s.chunk_tokens = chunk;
          s.row_bytes = 7168;
          s.scale_bytes = 224;
          s.home_bytes = 14336;
          auto const n = [](auto x) { return static_cast<std::size_t>(x); };
          std::size_t const record = round_up(n(7168 + 224 + 64), std::size_t{64});
          std::size_t const words = n(ranks) * n(s.round_chunks()) * 64;
          std::size_t const rows = n(tokens) * n(ranks) * (record + 14336);
          EXPECT_LE(lay_out_window(s, slots).bytes(), n(slots) * (rows + words) + 4096)
              << ranks << " ranks, " << tokens << " tokens in chunks of " << chunk << ", " << slots
              << " slots";
        }
}

}  // namespace
