// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/proxy_delivery.hpp>

#include "data/sanitized.hpp"
#include "kernels/emulated_teams.hpp"
#include "nic/direct_ranks.hpp"
#include "transport/proxied_ranks.hpp"
#include "transport/team_doubles.hpp"

#include <ferry/transport/loopback.hpp>

#include <gtest/gtest.h>

#include <array>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;

static_assert(delivery<proxied_ranks::delivery_type, cpu_team<void>>);
static_assert(delivery<proxied_ranks::delivery_type, emulated_team<64>>);

struct network {
  char const* name;
  make_net make;
};
void PrintTo(network const& n, std::ostream* out) {
  *out << n.name;
}

network const networks[] = {
    {"loopback",
     [](std::vector<mapped_window> w) {
       return make_loopback_transport(0, std::move(w), {.seed = 3, .reorder = 900, .delay = 30});
     }},
    {"loopback_that_is_often_full",
     [](std::vector<mapped_window> w) {
       return make_loopback_transport(0, std::move(w), {.try_again = 300, .queue_depth = 3});
     }},
    {"nic", [](std::vector<mapped_window> w) {
       return make_emulated(0, w, nic_vendor::bnxt, {.reorder = 1000}, {.queue_entries = 16});
     }}};

/// Steps of rows to all peers: rows by the team, words by one lane a peer, as kernels do it.
struct send_through {
  proxied_ranks* ranks;
  std::uint64_t steps;
  std::size_t row_bytes;
  std::atomic<int>* wrong;
  static constexpr std::size_t rows = 4;

  template <class Team, class Net>
  void operator()(Team const& t, Net const& net) const {
    // Each block has its own part of every window.
    std::size_t const base = static_cast<std::size_t>(t.block()) * (1 << 13);
    std::vector<std::byte> row(row_bytes);
    for (std::uint64_t n = 1; n <= steps; ++n) {
      for (std::size_t i = 0; i < rows; ++i)
        for (int to = 0; to < proxied_ranks::num_ranks; ++to) {
          std::fill(row.begin(), row.end(), mark(n, i, static_cast<std::size_t>(to)));
          net.put(t, to, base + 64 + i * row_bytes, row.data(), row_bytes);
          std::fill(row.begin(), row.end(), std::byte{0xee});  // it may be used again
          t.sync();
        }
      t.drain();
      t.block_sync();
      for (int to = t.lane(); to < proxied_ranks::num_ranks; to += Team::lanes)
        net.publish(t, to, flag::done, base, n);
      t.sync();
      if (t.leader()) look(base, n);
      t.sync();
    }
  }
  static std::byte mark(std::uint64_t n, std::size_t row, std::size_t to) {
    return static_cast<std::byte>(n * 16 + row * 4 + to);
  }
  void look(std::size_t base, std::uint64_t n) const {
    for (std::size_t to = 0; to < proxied_ranks::num_ranks; ++to) {
      if (!ranks->arrives(to, base, n)) ++*wrong;
      for (std::size_t b = 0; b < rows * row_bytes; ++b)
        if (ranks->windows[to].data()[base + 64 + b] != mark(n, b / row_bytes, to)) ++*wrong;
    }
  }
};

class proxy_delivery_test : public ::testing::TestWithParam<network> {};

TEST_P(proxy_delivery_test, shows_words_after_rows_from_teams_of_any_width) {
  std::uint32_t asleep[1] = {};
  status_record status{};
  waiter waits({}, asleep, &status, {});
  std::byte scratch[64];
  std::atomic<int> wrong{0};
  constexpr std::uint64_t steps = 25;
  for (std::size_t const row_bytes : {8u, 256u, 700u}) {
    proxied_ranks ranks(GetParam().make);
    send_through const kernel{&ranks, steps, row_bytes, &wrong};
    struct level {};
    kernel(cpu_team<level>(0, 1, waits, scratch, nullptr), ranks.net);
    EXPECT_EQ(wrong, 0) << row_bytes << " bytes";
    EXPECT_FALSE(ranks.through->first_error());
  }
  // Fibers switch stacks in a way that sanitizers do not follow.
  if (is_sanitized) return;
  proxied_ranks narrow(GetParam().make), wide(GetParam().make);
  send_through const by_32{&narrow, steps, 300, &wrong}, by_64{&wide, steps, 300, &wrong};
  ASSERT_TRUE(run_on_teams<32>({}, 5, {}, [&](auto const& t) { by_32(t, narrow.net); }));
  ASSERT_TRUE(run_on_teams<64>({}, 6, {}, [&](auto const& t) { by_64(t, wide.net); }));
  EXPECT_EQ(wrong, 0);
}

TEST_P(proxy_delivery_test, takes_requests_of_several_teams_at_once) {
  proxied_ranks ranks(GetParam().make);
  std::atomic<int> wrong{0};
  send_through const kernel{&ranks, 40, 300, &wrong};
  std::vector<std::thread> teams;
  for (int b = 0; b < 3; ++b)
    teams.emplace_back([&, b] {
      std::uint32_t asleep[1] = {};
      status_record status{};
      waiter waits({}, asleep, &status, {});
      std::byte scratch[64];
      struct level {};
      kernel(cpu_team<level>(b, 3, waits, scratch, nullptr), ranks.net);
    });
  for (std::thread& t : teams) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_FALSE(ranks.through->first_error());
}

INSTANTIATE_TEST_SUITE_P(over, proxy_delivery_test, ::testing::ValuesIn(networks),
                         [](auto const& n) { return n.param.name; });

}  // namespace
}  // namespace ferry::test
