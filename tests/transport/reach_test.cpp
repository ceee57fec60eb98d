// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/reach.hpp>

#include <gtest/gtest.h>

#include <type_traits>

namespace {

using ferry::reach;

TEST(reach, fits_into_a_byte_that_travels) {
  static_assert(std::is_same_v<std::underlying_type_t<reach>, std::uint8_t>);
  EXPECT_EQ(static_cast<int>(reach::self), 0);
  EXPECT_NE(reach::self, reach::mapped);
  EXPECT_NE(reach::mapped, reach::network);
}

}  // namespace
