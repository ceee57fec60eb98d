// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/copy_row.hpp>

#include "transport/team_doubles.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace ferry::test {
namespace {

constexpr std::byte untouched{0xEE};

// Copies `bytes` bytes from one misalignment to another; the bytes around stay as they were.
template <class Copy>
void expect_copied(std::size_t bytes, std::size_t from_offset, std::size_t to_offset,
                   Copy const& copy) {
  alignas(64) std::byte from[512], to[512];
  for (std::size_t i = 0; i < sizeof from; ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
  std::fill(std::begin(to), std::end(to), untouched);
  copy(to + to_offset, from + from_offset, bytes);
  for (std::size_t i = 0; i < sizeof to; ++i) {
    bool const inside = i >= to_offset && i < to_offset + bytes;
    ASSERT_EQ(to[i], inside ? from[from_offset + i - to_offset] : untouched)
        << bytes << " bytes from " << from_offset << " to " << to_offset << ", at " << i;
  }
}

template <class Copy>
void expect_all_lengths_and_alignments(Copy const& copy) {
  for (std::size_t bytes : {0, 1, 3, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200, 255, 256, 300})
    for (std::size_t from : {0, 1, 8, 16})
      for (std::size_t to : {0, 4, 16, 17}) expect_copied(bytes, from, to, copy);
}

TEST(copy_row, copies_any_length_at_any_alignment_with_one_lane) {
  expect_all_lengths_and_alignments([](std::byte* to, std::byte const* from, std::size_t bytes) {
    copy_row(idle_team{}, to, from, bytes);
  });
}

TEST(copy_row, shares_a_row_among_lanes) {
  expect_all_lengths_and_alignments([](std::byte* to, std::byte const* from, std::size_t bytes) {
    for (int lane = 0; lane < lane_of<8>::lanes; ++lane)
      copy_row(lane_of<8>{lane}, to, from, bytes);
  });
  expect_all_lengths_and_alignments([](std::byte* to, std::byte const* from, std::size_t bytes) {
    for (int lane = 0; lane < 32; ++lane) copy_row(lane_of<32>{lane}, to, from, bytes);
  });
}

TEST(copy_row, lets_every_lane_write_its_own_part_only) {
  // The lanes' parts together are the row, and no byte belongs to two of them.
  for (std::size_t bytes : {64u, 100u, 257u}) {
    std::vector<int> written(bytes);
    for (int lane = 0; lane < 8; ++lane) {
      alignas(64) std::byte from[512]{}, to[512];
      std::fill(std::begin(to), std::end(to), untouched);
      copy_row(lane_of<8>{lane}, to, from, bytes);
      for (std::size_t i = 0; i < bytes; ++i) written[i] += to[i] != untouched;
    }
    EXPECT_EQ(written, std::vector<int>(bytes, 1));
  }
}

}  // namespace
}  // namespace ferry::test
