// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/device_verbs/byte_order.hpp>

#include <gtest/gtest.h>

#include <cstring>

namespace ferry::device_verbs {
namespace {

TEST(byte_order, turns_the_bytes_of_a_number_round) {
  EXPECT_EQ(big(std::uint8_t{0xab}), 0xab);
  EXPECT_EQ(big(std::uint16_t{0x1234}), 0x3412);
  EXPECT_EQ(big(std::uint32_t{0x12345678}), 0x78563412u);
  EXPECT_EQ(big(std::uint64_t{0x0123456789abcdef}), 0xefcdab8967452301u);
  static_assert(big(std::uint32_t{1}) == 0x01000000u);
}

TEST(byte_order, puts_the_highest_byte_first_in_memory) {
  std::uint32_t const stored = big(std::uint32_t{0x01020304});
  unsigned char bytes[4];
  std::memcpy(bytes, &stored, 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(bytes[i], i + 1);
}

TEST(byte_order, undoes_itself) {
  std::uint64_t value = 0x8000000000000001;
  for (int i = 0; i < 1000; ++i, value = value * 6364136223846793005u + 1442695040888963407u)
    ASSERT_EQ(big(big(value)), value);
}

TEST(byte_order, splits_a_number_into_halves) {
  EXPECT_EQ(low_half(0x0123456789abcdef), 0x89abcdefu);
  EXPECT_EQ(high_half(0x0123456789abcdef), 0x01234567u);
}

}  // namespace
}  // namespace ferry::device_verbs
