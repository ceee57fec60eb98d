// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/shared_memory.hpp>

#include <ferry/memory/window.hpp>

#include <gtest/gtest.h>

#include <cstring>

namespace {

using namespace ferry;

TEST(shared_memory_transport, has_put_everything_when_it_returns) {
  window const mine = window::plain(4096).value(), theirs = window::plain(4096).value();
  auto const net = make_shared_memory_transport(0, {{mine.bytes()}, {theirs.bytes()}});
  abilities const a = net->what_it_can();
  EXPECT_TRUE(a.ordered_puts);
  EXPECT_FALSE(a.remote_add);
  EXPECT_FALSE(a.from_device);
  std::vector<std::byte> row(300, std::byte{5});
  EXPECT_EQ(net->put({1, 10, row.size()}, row.data()).value(), post::posted);
  std::vector<std::byte> const wanted = row;
  std::fill(row.begin(), row.end(), std::byte{0});
  EXPECT_EQ(std::memcmp(theirs.data() + 10, wanted.data(), wanted.size()), 0);
  EXPECT_EQ(net->signal({1, 8, 8}, 77, strength::this_put).value(), post::posted);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(theirs.data() + 8), 77u);
  EXPECT_TRUE(net->flush(1, std::chrono::milliseconds(1)));
}

TEST(shared_memory_transport, refuses_to_connect_to_a_window_of_another_size) {
  window const mine = window::plain(4096).value(), theirs = window::plain(8192).value();
  auto const net = make_shared_memory_transport(0, {{mine.bytes()}, {theirs.bytes()}});
  auto const address = net->expose(mine.bytes()).value();
  EXPECT_TRUE(net->connect(0, address));
  result<void> const r = net->connect(1, address);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, error_code::malformed_input);
  EXPECT_NE(r.error().message.find("4096"), std::string::npos) << r.error().message;
  EXPECT_NE(r.error().message.find("8192"), std::string::npos) << r.error().message;
}

}  // namespace
