// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Ranks that are processes, each with a NIC of its own, of different vendors in one group.

#include "contract/carried_exchange.hpp"
#include "multiprocess/ranks.hpp"
#include "nic/direct_ranks.hpp"

#include <gtest/gtest.h>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;

transport_maker one_vendor_a_rank(nic_faults f) {
  return [f](int rank, std::vector<mapped_window> windows) {
    return make_emulated(rank, windows, all_vendors[rank % 3], f, {.queue_entries = 64});
  };
}

/// Each process maps all windows anew, so that no address is the same in two of them.
std::vector<window> map_all(std::vector<window> const& shared) {
  std::vector<window> mine;
  for (window const& w : shared) mine.push_back(window::map(w.descriptor(), w.size()).value());
  return mine;
}
std::vector<window> shareable_windows(carry_settings const& s) {
  std::vector<window> made;
  for (int r = 0; r < s.ranks; ++r)
    made.push_back(window::shareable(carried_rank::window_bytes(s)).value());
  return made;
}

TEST(nic_processes, carry_an_exchange_between_nics_of_three_vendors) {
  carry_settings const s{.ranks = 4, .steps = 80, .round_tokens = 3};
  auto const shared = shareable_windows(s);
  auto const report = run_ranks(s.ranks, [&](int r, std::string const& address) {
    group const g = join(tcp(address, r, s.ranks), {.timeout = s.timeout}).value();
    auto const windows = map_all(shared);
    carried into(s);
    std::atomic<int> right{0};
    {
      carried_rank rank(s, g, r, windows, one_vendor_a_rank({.seed = 3, .reorder = 900}));
      ASSERT_TRUE(g.barrier());
      rank.run(into, right);
      ASSERT_TRUE(g.barrier()) << "nobody leaves while its last words are on their way";
    }
    EXPECT_EQ(into.errors[static_cast<std::size_t>(r)], "");
    EXPECT_EQ(right, s.steps);
  });
  EXPECT_TRUE(report.ok()) << report.describe();
}

TEST(nic_processes, name_the_rank_that_was_killed) {
  carry_settings const s{.ranks = 3, .steps = 100000, .timeout = 8s};
  auto const shared = shareable_windows(s);
  rank_processes ranks(s.ranks, [&](int r, std::string const& address) {
    group const g = join(tcp(address, r, s.ranks), {.timeout = s.timeout}).value();
    auto const windows = map_all(shared);
    carried into(s);
    std::atomic<int> right{0};
    carried_rank rank(s, g, r, windows, one_vendor_a_rank({}));
    ASSERT_TRUE(g.barrier());
    rank.run(into, right);
    auto const at = static_cast<std::size_t>(r);
    EXPECT_EQ(into.codes[at], error_code::unreachable) << into.errors[at];
    EXPECT_NE(into.errors[at].find("rank 1"), std::string::npos) << into.errors[at];
    EXPECT_EQ(into.errors[at].find("wrong data"), std::string::npos) << into.errors[at];
  });
  std::this_thread::sleep_for(1s);
  ranks.send_signal(1, SIGKILL);
  auto const report = ranks.wait(30s);
  EXPECT_TRUE(report.ranks[0].ok()) << report.describe();
  EXPECT_TRUE(report.ranks[2].ok()) << report.describe();
  EXPECT_EQ(report.ranks[1].signal, SIGKILL);
}

}  // namespace
}  // namespace ferry::test
