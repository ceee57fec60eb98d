// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/proxy_ring.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;
using device_verbs::cpu_nic_access;
using device_verbs::host_patience;

struct lone_ring {
  proxy_words words{};
  std::vector<proxy_request> requests = std::vector<proxy_request>(8);
  std::vector<std::byte> staging = std::vector<std::byte>(8 * 64);
  cpu_nic_access access;
  proxy_ring ring{requests.data(), staging.data(), &words.taken, &words.free, &words.failed, 8, 64};

  bool take(std::uint32_t& number, std::chrono::milliseconds most = 5ms) {
    host_patience patience(most);
    return ring.take(access, patience, number);
  }
};

TEST(proxy_ring, gives_numbers_in_order_and_places_in_turn) {
  lone_ring r;
  std::uint32_t number = 99;
  for (std::uint32_t i = 0; i < 8; ++i) {
    ASSERT_TRUE(r.take(number));
    EXPECT_EQ(number, i);
    EXPECT_EQ(r.ring.place_of(number), r.staging.data() + 64 * i);
  }
  r.words.free = 1;
  ASSERT_TRUE(r.take(number));
  EXPECT_EQ(number, 8u);
  EXPECT_EQ(r.ring.place_of(number), r.staging.data());
  EXPECT_EQ(&r.ring.at(number), r.requests.data());
}

TEST(proxy_ring, fails_when_there_was_no_room_for_too_long) {
  lone_ring r;
  std::uint32_t number = 0;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(r.take(number));
  auto const start = std::chrono::steady_clock::now();
  EXPECT_FALSE(r.take(number, 20ms));
  EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);
  EXPECT_EQ(r.words.failed, 1u);
  r.words.free = 8;
  EXPECT_FALSE(r.take(number)) << "a number is missing for ever";
}

TEST(proxy_ring, goes_on_when_its_numbers_wrap) {
  lone_ring r;
  r.words.taken = r.words.free = 0xfffffffc;
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < 8; ++i) ASSERT_TRUE(r.take(number)) << i;
  EXPECT_EQ(number, 3u);
  EXPECT_FALSE(r.take(number));
}

TEST(proxy_ring, shows_a_request_with_its_mark) {
  lone_ring r;
  int wrong = 0;
  std::thread host([&] {
    for (std::uint32_t n = 0; n < 5000; ++n) {
      while (r.access.load(&r.ring.at(n).marked) != n + 1) std::this_thread::yield();
      if (r.ring.at(n).word != n * 3ull || r.ring.place_of(n)[63] != static_cast<std::byte>(n))
        ++wrong;
      r.access.store(r.ring.free, n + 1);
    }
  });
  for (std::uint32_t n = 0; n < 5000; ++n) {
    std::uint32_t number = 0;
    ASSERT_TRUE(r.take(number, 20s));
    ASSERT_EQ(number, n);
    r.ring.at(n).word = n * 3ull;
    r.ring.place_of(n)[63] = static_cast<std::byte>(n);
    r.ring.mark(r.access, n);
  }
  host.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace ferry::test
