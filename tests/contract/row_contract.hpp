// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// How rows are moved, within a rank and to a peer's window, and words published: the contract of
/// the concept `delivery`.
#pragma once

#include "contract/contract_case.hpp"

#include <cstring>
#include <vector>

namespace ferry::test {

class row_contract : public contract_case {
 protected:
  static constexpr std::size_t part = 3200;  ///< of the window, for one row
  static constexpr std::size_t start = 256;  ///< of the parts in the window

  /// Lengths around what a lane and a team move at once, from and to any alignment.
  static std::vector<row_case> cases() {
    std::vector<row_case> all;
    for (std::uint32_t bytes :
         {0u, 1u, 3u, 4u, 15u, 16u, 17u, 47u, 511u, 512u, 1000u, 1024u, 2048u, 2880u, 2999u})
      for (std::uint32_t from : {0u, 1u, 4u, 16u})
        for (std::uint32_t to : {0u, 16u, 20u, 33u}) all.push_back({from, to, bytes});
    return all;
  }

  /// Checks that every byte came, and no other.
  static void expect_rows(std::vector<row_case> const& cases, std::vector<std::byte> const& from,
                          std::byte const* parts) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      row_case const& c = cases[i];
      std::vector<std::byte> want(part);
      std::memcpy(want.data() + c.to, from.data() + c.from, c.bytes);
      std::byte const* const there = parts + i * part;
      if (std::memcmp(there, want.data(), part) == 0) continue;
      auto const [wanted, found] = std::mismatch(want.begin(), want.end(), there);
      ADD_FAILURE() << c.bytes << " bytes from " << c.from << " to " << c.to << ": byte "
                    << found - there << " is " << std::to_integer<int>(*found) << ", not "
                    << std::to_integer<int>(*wanted);
    }
  }
  static std::vector<std::byte> source() {
    std::vector<std::byte> from(3072);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
    return from;
  }
  static lane_grid grid() { return on_cpu() ? lane_grid{3, 1} : lane_grid{2, 2}; }
};

TEST_P(row_contract, puts_every_byte_and_no_other_at_any_address) {
  contract_place place(where());
  auto const all = cases();
  auto const bytes = source();
  contract_array<row_case> there(where(), all);
  contract_array<std::byte> from(where(), bytes);
  contract_array<std::byte> window(where(), start + all.size() * part, memory_kind::rows);
  place.peers.rank = 0;
  place.peers.rows[1] = place.peers.flags[1] = window.data();
  queue q = place.make_queue(grid().blocks);
  put_rows const put{.cases = there.data(),
                     .num_cases = static_cast<std::int32_t>(all.size()),
                     .from = from.data(),
                     .offset = start,
                     .part = part,
                     .to = 1};
  place.run(q, grid(), put).value();
  finish(q);
  auto const found = window.read();
  expect_rows(all, bytes, found.data() + start);
  EXPECT_EQ(std::count(found.begin(), found.begin() + start, std::byte{0}), start);
}

TEST_P(row_contract, copies_every_byte_and_no_other_at_any_address) {
  contract_place place(where());
  auto const all = cases();
  auto const bytes = source();
  contract_array<row_case> there(where(), all);
  contract_array<std::byte> from(where(), bytes), to(where(), all.size() * part);
  queue q = place.make_queue(grid().blocks);
  put_rows const copy{.cases = there.data(),
                      .num_cases = static_cast<std::int32_t>(all.size()),
                      .from = from.data(),
                      .part = part,
                      .here = to.data()};
  place.run(q, grid(), copy).value();
  finish(q);
  expect_rows(all, bytes, to.read().data());
}

TEST_P(row_contract, puts_what_each_lane_holds) {
  contract_place place(where());
  auto const lanes = static_cast<std::size_t>(place.lanes());
  contract_array<std::byte> window(where(), 64 + 21 * lanes, memory_kind::rows);
  place.peers.rank = 1;
  place.peers.rows[0] = place.peers.flags[0] = window.data();
  queue q = place.make_queue(1);
  place.run(q, {1, 1}, put_values{64, 0}).value();
  finish(q);
  auto const found = window.read();
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    piece const want{{lane, lane + 1000, ~lane, 7 * lane}};
    std::uint32_t word = 0;
    std::memcpy(&word, &found[64 + 16 * lanes + 4 * lane], sizeof word);
    EXPECT_EQ(std::memcmp(&found[64 + 16 * lane], &want, sizeof want), 0) << lane;
    EXPECT_EQ(word, 77000 + lane);
    EXPECT_EQ(std::to_integer<std::uint32_t>(found[64 + 20 * lanes + lane]), 200 - lane);
  }
}

TEST_P(row_contract, publishes_to_every_rank_from_a_lane_of_its_own) {
  constexpr std::size_t window = 1024, word = 8;
  contract_place place(where());
  contract_array<std::byte> windows(where(), max_mapped_ranks * window, memory_kind::flags);
  place.peers.rank = 3;
  place.asleep_offset = 512;
  for (int r = 0; r < max_mapped_ranks; ++r)
    place.peers.flags[r] = place.peers.rows[r] =
        windows.data() + static_cast<std::size_t>(r) * window;
  queue q = place.make_queue(grid().blocks);
  for (int ranks : {1, 5, 33, max_mapped_ranks}) {
    std::uint64_t const first = (std::uint64_t{1} << 40) + static_cast<std::uint64_t>(ranks) * 1000;
    windows.write(std::vector<std::byte>(windows.size()));
    place.run(q, grid(), publish_words{word, first, ranks}).value();
    finish(q);
    auto const found = windows.read();
    for (int r = 0; r < max_mapped_ranks; ++r) {
      std::uint64_t there[2];
      std::memcpy(there, &found[static_cast<std::size_t>(r) * window], sizeof there);
      EXPECT_EQ(there[0], 0u);
      EXPECT_EQ(there[1], r < ranks ? first + static_cast<std::uint64_t>(r) : 0u) << r;
    }
  }
}

}  // namespace ferry::test
