// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/relay_fields.hpp>

#include <gtest/gtest.h>

namespace {

using namespace ferry;

exchange_shape shape_for(int seed) {
  exchange_shape s;
  s.ranks = 2 + seed % 9;
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

TEST(relay_fields, have_room_for_every_record_and_never_overlap) {
  for (int seed = 0; seed < 100; ++seed) {
    exchange_shape const s = shape_for(seed);
    relay_shape const r{1 + seed % 4, 1 + seed % 5};
    relay_layout const l = lay_out_relay(s, r);
    auto const n = [](int x) { return static_cast<std::size_t>(x); };
    std::size_t const records = n(r.sources) * n(s.round_tokens);
    std::size_t const home = records * n(s.per_choice ? s.topk : r.members);
    struct need {
      relay_field field;
      std::size_t items, bytes;
    };
    std::size_t end = 0;
    for (need const& f :
         {need{relay_field::rows, records, s.row_bytes},
          {relay_field::returned, home, s.home_bytes},
          {relay_field::scales, records, s.scale_bytes},
          {relay_field::routes, records, route_bytes(s.topk)},
          {relay_field::returned_scales, home, s.home_scale_bytes},
          {relay_field::counts, n(r.sources) * n(r.members), 4 * n(s.most_local_experts())}}) {
      ASSERT_GE(l.offset(f.field), end) << seed;
      ASSERT_GE(l.stride(f.field), f.bytes) << seed;
      ASSERT_EQ(l[f.field].items, f.items) << seed;
      end = l.offset(f.field, f.items);
    }
    ASSERT_EQ(l.bytes(), end);
  }
}

TEST(relay_fields, give_each_writer_lines_of_its_own) {
  for (int seed = 0; seed < 100; ++seed) {
    exchange_shape const s = shape_for(seed);
    relay_shape const r{1 + seed % 4, 1 + seed % 5};
    relay_flag_layout const l = lay_out_relay_flags(s, r);
    std::size_t const words = 8 * (1 + static_cast<std::size_t>(s.round_chunks()));
    for (relay_flag_field f : {relay_flag_field::arrived, relay_flag_field::back}) {
      ASSERT_EQ(l.offset(f) % flag_line, 0u);
      ASSERT_EQ(l.stride(f) % flag_line, 0u);
      ASSERT_GE(l.stride(f), words);
    }
    ASSERT_EQ(l[relay_flag_field::back].items, static_cast<std::size_t>(r.sources * r.members));
  }
}

TEST(relay_fields, add_nothing_to_a_window_where_records_take_one_hop) {
  for (int seed = 0; seed < 100; ++seed) {
    exchange_shape const s = shape_for(seed);
    window_layout const plain = lay_out_window(s, 1 + seed % 4);
    window_layout const none = lay_out_window(s, 1 + seed % 4, relay_bytes_of(s, {}));
    EXPECT_EQ(plain.bytes(), none.bytes());
    EXPECT_EQ(plain.bytes(),
              plain.offset(window_field::rows) +
                  static_cast<std::size_t>(1 + seed % 4) * plain.stride(window_field::rows));
    EXPECT_EQ(flag_bytes_of(plain),
              round_up(plain.offset(window_field::flags) + static_cast<std::size_t>(1 + seed % 4) *
                                                               plain.stride(window_field::flags),
                       part_align));
  }
}

TEST(relay_fields, keep_relays_flags_with_the_flags) {
  exchange_shape const s = shape_for(7);
  relay_bytes const more = relay_bytes_of(s, {3, 4});
  window_layout const w = lay_out_window(s, 2, more);
  EXPECT_GE(w.offset(window_field::relay_flags), w.offset(window_field::flags, 2));
  EXPECT_GE(w.offset(window_field::rows), w.offset(window_field::relay_flags, 2));
  EXPECT_GE(w.offset(window_field::relay_rows), w.offset(window_field::rows, 2));
  EXPECT_EQ(w.offset(window_field::relay_rows, 1) % part_align, 0u);
  EXPECT_GE(w.bytes(), lay_out_window(s, 2).bytes() + 2 * more.rows + 2 * more.flags);
}

}  // namespace
