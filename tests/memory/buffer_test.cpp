// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/memory/buffer.hpp>

#include <gtest/gtest.h>

#include <cstdint>

namespace {

using namespace ferry;

TEST(buffer, is_zeroed_and_page_aligned) {
  buffer b = buffer::allocate(10000).value();
  ASSERT_EQ(b.size(), 10000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data()) % 4096, 0u);
  for (std::size_t i = 0; i < b.size(); ++i) ASSERT_EQ(b.data()[i], std::byte{0});
  b.data()[9999] = std::byte{1};
}

TEST(buffer, may_be_empty) {
  buffer const b = buffer::allocate(0).value();
  EXPECT_EQ(b.data(), nullptr);
  EXPECT_EQ(b.size(), 0u);
}

TEST(buffer, moves_its_memory) {
  buffer a = buffer::allocate(100).value();
  std::byte* const at = a.data();
  buffer b = std::move(a);
  EXPECT_EQ(b.data(), at);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.size(), 0u);
  buffer c = buffer::allocate(5).value();
  c = std::move(b);
  EXPECT_EQ(c.data(), at);
  EXPECT_EQ(c.size(), 100u);
}

// Worst cases cost address space alone.
TEST(buffer, pages_in_only_what_is_touched) {
  buffer b = buffer::allocate(std::size_t{64} << 30).value();
  b.data()[std::size_t{63} << 30] = std::byte{7};
  EXPECT_EQ(b.data()[std::size_t{63} << 30], std::byte{7});
}

TEST(buffer, says_how_much_it_could_not_have) {
  result<buffer> const b = buffer::allocate(std::size_t{1} << 60);
  ASSERT_FALSE(b.has_value());
  EXPECT_EQ(b.error().code, error_code::out_of_memory);
  EXPECT_NE(b.error().message.find(std::to_string(std::size_t{1} << 60)), std::string::npos);
}

}  // namespace
