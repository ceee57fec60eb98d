// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/device_verbs/gpu_nic_access.hpp>

#include "kernels/emulated_teams.hpp"
#include "nic/direct_queue.hpp"

#include <gtest/gtest.h>

namespace ferry::test {
namespace {

using namespace device_verbs;

template <int Lanes>
using access_of = gpu_nic_access<emulated_device<Lanes>>;
static_assert(nic_access<access_of<32>> && nic_access<access_of<64>>);
static_assert(patience<gpu_patience<emulated_device<64>>>);

// Two teams of lanes post to one queue at once.
template <int Lanes, class Format>
void post_from_lanes(nic_vendor vendor) {
  constexpr std::uint32_t each = 5, teams = 2;
  direct_queue<Format> q(vendor, {}, false);
  send_queue<Format, access_of<Lanes>> const queue{q.queue.pair, &q.counters, {}};
  result<void> const ran = run_on_teams<Lanes>({1, teams}, 7, {}, [&](auto const& t) {
    gpu_patience<emulated_device<Lanes>> how_long(10'000'000'000);
    auto const first = static_cast<std::uint32_t>(t.index()) * each;
    bool const posted = queue.post(
        t, each, [&](std::uint32_t i) { return q.word_of(8 * (first + i), 100 + first + i); },
        how_long);
    EXPECT_TRUE(posted);
  });
  ASSERT_TRUE(ran) << ran.error().message;
  q.finish();
  EXPECT_TRUE(q.nic.refusals().empty());
  EXPECT_EQ(q.queue.status(), nic_status::ok);
  for (std::uint32_t i = 0; i < teams * each; ++i)
    EXPECT_EQ(q.remote_word(8 * i), 100 + i) << to_string(vendor);
}

TEST(gpu_nic_access, posts_from_lanes_what_every_vendors_nic_takes) {
  for (nic_vendor const vendor : all_vendors)
    with_format(vendor, [&]<class Format>(Format) {
      post_from_lanes<32, Format>(vendor);
      post_from_lanes<64, Format>(vendor);
    });
}

TEST(gpu_nic_access, lets_a_lane_wait_no_longer_than_it_was_told) {
  gpu_patience<emulated_device<32>> none(0), some(60'000'000'000);
  EXPECT_FALSE(none.left());
  EXPECT_TRUE(some.left());
}

}  // namespace
}  // namespace ferry::test
