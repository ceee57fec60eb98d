// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/memory/window.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using ferry::error_code;
using ferry::window;

bool all_zero(window const& w) {
  return std::ranges::all_of(w.bytes(), [](std::byte b) { return b == std::byte{0}; });
}

bool on_a_page(window const& w) {
  return reinterpret_cast<std::uintptr_t>(w.data()) % 4096 == 0;
}

TEST(window, plain_memory_is_zeroed_and_page_aligned) {
  for (std::size_t bytes : {1u, 4095u, 4096u, 4097u, 1u << 20}) {
    auto w = window::plain(bytes).value();
    EXPECT_EQ(w.size(), bytes);
    EXPECT_TRUE(on_a_page(w));
    EXPECT_TRUE(all_zero(w));
    EXPECT_EQ(w.descriptor(), -1);
    w.bytes().back() = std::byte{7};
    EXPECT_EQ(w.data()[bytes - 1], std::byte{7});
  }
}

TEST(window, shareable_memory_is_zeroed_and_page_aligned) {
  for (std::size_t bytes : {1u, 4096u, 5000u}) {
    auto const w = window::shareable(bytes).value();
    EXPECT_EQ(w.size(), bytes);
    EXPECT_TRUE(on_a_page(w));
    EXPECT_TRUE(all_zero(w));
    EXPECT_GE(w.descriptor(), 0);
  }
}

TEST(window, an_empty_window_has_no_memory) {
  window const w;
  EXPECT_EQ(w.data(), nullptr);
  EXPECT_EQ(w.size(), 0u);
  EXPECT_EQ(w.descriptor(), -1);
}

TEST(window, copies_are_the_same_memory) {
  window copy;
  {
    auto const first = window::plain(64).value();
    copy = first;
    first.data()[3] = std::byte{9};
  }
  EXPECT_EQ(copy.data()[3], std::byte{9});
}

TEST(window, a_mapping_is_the_same_memory) {
  auto const owner = window::shareable(10000).value();
  auto const view = window::map(owner.descriptor(), 10000).value();
  EXPECT_NE(owner.data(), view.data());
  owner.data()[9999] = std::byte{1};
  view.data()[0] = std::byte{2};
  EXPECT_EQ(view.data()[9999], std::byte{1});
  EXPECT_EQ(owner.data()[0], std::byte{2});
}

TEST(window, a_mapping_outlives_its_owner) {
  window view;
  {
    auto const owner = window::shareable(100).value();
    owner.data()[42] = std::byte{5};
    view = window::map(owner.descriptor(), 100).value();
  }
  EXPECT_EQ(view.data()[42], std::byte{5});
}

TEST(window, the_descriptor_can_neither_shrink_nor_grow_nor_be_unsealed) {
  auto const w = window::shareable(8192).value();
  EXPECT_NE(::ftruncate(w.descriptor(), 4096), 0);
  EXPECT_NE(::ftruncate(w.descriptor(), 1 << 20), 0);
  EXPECT_NE(::fcntl(w.descriptor(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(::fcntl(w.descriptor(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(window, closes_its_descriptor_when_the_last_copy_goes) {
  int number = -1;
  {
    auto const w = window::shareable(1).value();
    auto const copy = w;
    number = w.descriptor();
    EXPECT_GE(::fcntl(number, F_GETFD), 0);
  }
  EXPECT_LT(::fcntl(number, F_GETFD), 0);
}

TEST(window, refuses_no_bytes) {
  auto const owner = window::shareable(1).value();
  for (auto const& made :
       {window::plain(0), window::shareable(0), window::map(owner.descriptor(), 0)}) {
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, error_code::invalid_argument);
    EXPECT_NE(made.error().message.find("0 bytes"), std::string::npos);
  }
}

TEST(window, refuses_more_than_the_address_space_holds) {
  for (std::size_t bytes : {SIZE_MAX, SIZE_MAX / 2, std::size_t{1} << 62, std::size_t{1} << 50}) {
    for (auto const& made : {window::plain(bytes), window::shareable(bytes)}) {
      ASSERT_FALSE(made) << bytes;
      EXPECT_EQ(made.error().code, error_code::out_of_memory) << made.error().message;
      EXPECT_NE(made.error().message.find(std::to_string(bytes)), std::string::npos);
    }
  }
}

TEST(window, refuses_a_descriptor_that_holds_too_little) {
  auto const owner = window::shareable(4096).value();
  auto const made = window::map(owner.descriptor(), 4097);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::malformed_input);
  EXPECT_NE(made.error().message.find("4097"), std::string::npos);
}

TEST(window, refuses_a_descriptor_that_may_still_shrink) {
  int const fd = ::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, 4096), 0);
  auto const made = window::map(fd, 4096);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::malformed_input);
  ::close(fd);
}

TEST(window, refuses_a_descriptor_that_is_no_memfd) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  auto const made = window::map(ends[0], 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, error_code::malformed_input);
  EXPECT_EQ(window::map(-1, 1).error().code, error_code::io);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
