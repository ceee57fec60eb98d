// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// A window's size is the one that the documents promise, and never much more.

#include <ferry/exchange.hpp>

#include <gtest/gtest.h>

namespace {

using namespace ferry;

struct sizes {
  std::size_t record, home_row;
};

std::size_t to_line(std::size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

sizes sizes_of(exchange_options const& o) {
  auto const hidden = static_cast<std::size_t>(o.hidden);
  std::size_t const blocks = (hidden + 127) / 128;
  std::size_t row = 0, scales = 0;
  switch (o.wire) {
    case wire::f32: row = 4 * hidden; break;
    case wire::bf16:
    case wire::fp16: row = 2 * hidden; break;
    case wire::fp8_ue8m0: row = hidden, scales = blocks; break;
    case wire::opaque: row = o.opaque_row_bytes, scales = o.opaque_scale_bytes; break;
    default: row = hidden, scales = 4 * blocks;
  }
  return {to_line(row + scales + 8 * static_cast<std::size_t>(o.topk)),
          to_line(hidden * (o.combine_wire == wire::f32 ? 4 : 2))};
}

/// slots * M * (R * record + H * home row), 64 bytes for each (rank, chunk, slot), and a page.
std::size_t promised(exchange_options const& o, std::size_t ranks) {
  auto const slots = static_cast<std::size_t>(o.num_microbatches);
  auto const tokens = static_cast<std::size_t>(o.max_tokens);
  std::size_t const home =
      o.reduction == reduction::per_rank ? ranks : static_cast<std::size_t>(o.topk);
  sizes const s = sizes_of(o);
  std::size_t const chunk = o.chunk_tokens ? static_cast<std::size_t>(o.chunk_tokens) : 16;
  std::size_t const chunks = (tokens + chunk - 1) / chunk;
  return slots * tokens * (ranks * s.record + home * s.home_row) + 64 * ranks * chunks * slots +
         4096;
}

template <class F>
void for_many_shapes(F const& f) {
  for (int ranks : {1, 2, 3, 8, 16, 64, 256})
    for (int tokens : {1, 2, 8, 16, 17, 128, 1000, 4096})
      for (int hidden : {64, 1000, 7168})
        for (int topk : {1, 6, 8, 32})
          for (int slots : {1, 2})
            for (wire w : {wire::bf16, wire::f32, wire::fp8_e4m3, wire::fp8_ue8m0, wire::opaque})
              for (reduction r : {reduction::per_rank, reduction::per_choice}) {
                exchange_options o{
                    .num_experts = 256, .topk = topk, .hidden = hidden, .max_tokens = tokens};
                o.wire = w;
                o.reduction = r;
                o.num_microbatches = slots;
                if (w == wire::opaque) {
                  // Rows start at multiples of 16: another 15 bytes of a row may be lost to that.
                  o.opaque_row_bytes = static_cast<std::size_t>(hidden);
                  o.opaque_scale_bytes = 7;
                }
                f(o, ranks);
              }
}

TEST(window_bytes, are_at_most_those_of_the_formula) {
  int shapes = 0, over = 0;
  for_many_shapes([&](exchange_options const& o, int ranks) {
    std::size_t const bytes = window_bytes(o, ranks).value(),
                      most = promised(o, static_cast<std::size_t>(ranks));
    ++shapes;
    if (bytes <= most || ++over > 5) return;
    ADD_FAILURE() << bytes << " bytes, promised " << most << " (" << bytes - most
                  << " too many): " << ranks << " ranks, " << o.max_tokens << " tokens, hidden "
                  << o.hidden << ", top-" << o.topk << ", " << o.num_microbatches << " slots, "
                  << to_string(o.wire);
  });
  EXPECT_EQ(over, 0) << "of " << shapes << " shapes";
}

// A formula that a window without inboxes would keep as well shows nothing.
TEST(window_bytes, are_no_fewer_than_the_rows_need) {
  for_many_shapes([&](exchange_options const& o, int ranks) {
    auto const r = static_cast<std::size_t>(ranks),
               slots = static_cast<std::size_t>(o.num_microbatches);
    auto const tokens = static_cast<std::size_t>(o.max_tokens);
    std::size_t const home =
        o.reduction == reduction::per_rank ? r : static_cast<std::size_t>(o.topk);
    sizes const s = sizes_of(o);
    EXPECT_GE(window_bytes(o, ranks).value(),
              slots * tokens * (r * (s.record - 63) + home * (s.home_row - 63)));
  });
}

TEST(window_bytes, are_seven_mebibytes_a_way_for_eight_ranks_of_128_tokens_in_fp8) {
  exchange_options o{.num_experts = 256, .topk = 8, .hidden = 7168, .max_tokens = 128};
  o.wire = wire::fp8_e4m3;
  o.num_microbatches = 1;
  std::size_t const there = 8 * 128 * (7168 + 224 + 64), back = 8 * 128 * 14336;
  EXPECT_NEAR(static_cast<double>(window_bytes(o, 8).value()), static_cast<double>(there + back),
              16384);
}

}  // namespace
