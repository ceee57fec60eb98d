// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/strip.hpp>

#include <ferry/exec/cpu/cpu_strip.hpp>
#include <ferry/exec/emulated/emulated_strip.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;

TEST(strip, pieces_cover_each_column_of_each_row_once) {
  for (std::int64_t rows : {0, 1, 3, 7}) {
    for (std::int64_t columns : {0, 1, 511, 512, 513, 1300}) {
      std::vector<int> visits(static_cast<std::size_t>(rows * columns));
      auto const visit = [&](auto const& s) {
        for_each_piece(s, rows, columns, [&](std::int64_t row, std::int64_t first, std::int64_t n) {
          s.for_each(n, [&](std::int64_t i) {
            ++visits[static_cast<std::size_t>(row * columns + first + i)];
          });
        });
      };
      visit(cpu_strip<void, 4>{});
      run_on_strips({2, 1}, 64, 1, visit).value();
      EXPECT_EQ(visits, std::vector<int>(visits.size(), 2)) << rows << " by " << columns;
    }
  }
}

TEST(strip, one_that_is_alone_takes_whole_rows) {
  int calls = 0;
  for_each_piece(cpu_strip<void, 4>{}, 2, 5000,
                 [&](std::int64_t row, std::int64_t first, std::int64_t n) {
                   EXPECT_EQ(row, calls++);
                   EXPECT_EQ(first, 0);
                   EXPECT_EQ(n, 5000);
                 });
  EXPECT_EQ(calls, 2);
}

}  // namespace
