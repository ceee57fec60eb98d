// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/emulated/emulated_device.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace ferry;

template <class Width>
class emulated_device_of : public testing::Test {};
using widths = testing::Types<std::integral_constant<int, 32>, std::integral_constant<int, 64>>;
TYPED_TEST_SUITE(emulated_device_of, widths);

TYPED_TEST(emulated_device_of, shares_among_the_lanes_of_a_team) {
  constexpr int lanes = TypeParam::value;
  using dev = emulated_device<lanes>;
  lane_launch({2, 2}, lanes, 3)
      .run([] {
        auto const mine = static_cast<std::uint32_t>(dev::lane());
        EXPECT_EQ(dev::broadcast(mine, lanes - 1), lanes - 1u);
        EXPECT_EQ(dev::from_lane(mine, (dev::lane() + 1) % lanes), (mine + 1) % lanes);
        typename dev::mask odd = 0;
        for (int i = 1; i < lanes; i += 2) odd |= typename dev::mask{1} << i;
        EXPECT_EQ(dev::ballot(dev::lane() % 2 == 1), odd);
        EXPECT_EQ(dev::template other_half<4>(static_cast<float>(mine)),
                  static_cast<float>(mine ^ 4u));
      })
      .value();
}

// Without the barrier some order shows the missing number.
TYPED_TEST(emulated_device_of, needs_a_sync_between_a_store_and_another_lanes_load) {
  constexpr int lanes = TypeParam::value;
  using dev = emulated_device<lanes>;
  int wrong[2] = {};
  for (bool synced : {false, true})
    for (std::uint64_t seed = 1; seed < 10; ++seed) {
      std::vector<int> left(lanes);
      lane_launch({1, 1}, lanes, seed)
          .run([&] {
            left[static_cast<std::size_t>(dev::lane())] = 1;
            if (synced) dev::sync();
            wrong[synced] += left[static_cast<std::size_t>((dev::lane() + 1) % lanes)] == 0;
          })
          .value();
    }
  EXPECT_GT(wrong[0], 0);
  EXPECT_EQ(wrong[1], 0);
}

TYPED_TEST(emulated_device_of, shows_what_it_stores_through_once_the_team_has_drained) {
  constexpr int lanes = TypeParam::value;
  using dev = emulated_device<lanes>;
  std::vector<std::uint32_t> row(lanes);
  auto* const bytes = reinterpret_cast<std::byte*>(row.data());
  int seen[2] = {};
  lane_launch({1, 1}, lanes, 3)
      .run([&] {
        dev::store_through(bytes, 4 * static_cast<std::uint32_t>(dev::lane()), std::uint32_t{9});
        dev::sync();
        seen[0] += row[static_cast<std::size_t>(dev::lane())] == 9;
        dev::drain();
        seen[1] += row[static_cast<std::size_t>((dev::lane() + 3) % lanes)] == 9;
      })
      .value();
  EXPECT_EQ(seen[0], 0);
  EXPECT_EQ(seen[1], lanes);
}

TYPED_TEST(emulated_device_of, claims_a_word_once) {
  constexpr int lanes = TypeParam::value;
  using dev = emulated_device<lanes>;
  std::uint64_t word = 0;
  std::uint32_t claimed = 0;
  lane_launch({2, 1}, lanes, 3)
      .run([&] {
        if (dev::claim(&word, 5)) dev::add(&claimed, 1u);
      })
      .value();
  EXPECT_EQ(claimed, 1u);
  EXPECT_EQ(word, 5u);
}

}  // namespace
