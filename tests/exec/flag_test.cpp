// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/flag.hpp>

#include <gtest/gtest.h>

#include <type_traits>

namespace {

using namespace ferry;

// A header carries 24 bits of tokens, an arrived word a map of 16 tokens; 40 bits of epoch and more
// never wrap.
TEST(flag, leaves_each_kind_the_bits_that_its_word_needs) {
  EXPECT_EQ(epoch_shift(flag::header), 24);
  EXPECT_EQ(epoch_shift(flag::arrived), 16);
  EXPECT_EQ(epoch_shift(flag::back), 0);
  EXPECT_EQ(epoch_shift(flag::done), 0);
}

// Around every epoch at which a word of some kind starts again from 0, and far from it.
TEST(flag, compares_epochs_across_the_end_of_their_field) {
  for (flag kind : {flag::header, flag::arrived, flag::back, flag::done})
    for (int bits : {3, 32, 40, 48, 63}) {
      int const shift = epoch_shift(kind);
      std::uint64_t const low = (std::uint64_t{1} << shift) - 1;
      std::uint64_t const middle = std::uint64_t{1} << bits;
      for (std::uint64_t epoch = middle - 4; epoch != middle + 4; ++epoch)
        for (std::uint64_t word = middle - 4; word != middle + 4; ++word)
          for (std::uint64_t rest : {std::uint64_t{0}, low})
            EXPECT_EQ(has_reached(kind, word << shift | rest, epoch), word >= epoch)
                << static_cast<int>(kind) << ", 2^" << bits << ": " << word << " for " << epoch;
    }
}

TEST(flag, takes_an_untouched_word_for_epoch_zero) {
  for (flag kind : {flag::header, flag::arrived, flag::back, flag::done}) {
    EXPECT_TRUE(has_reached(kind, 0, 0));
    EXPECT_FALSE(has_reached(kind, 0, 1));
    EXPECT_FALSE(has_reached(kind, 0, 1000000));
  }
}

TEST(flag, has_failures_that_may_lie_in_a_window) {
  EXPECT_TRUE(std::is_trivially_copyable_v<failure>);
  EXPECT_TRUE(std::is_standard_layout_v<failure>);
}

}  // namespace
