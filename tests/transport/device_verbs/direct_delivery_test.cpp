// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/transport/device_verbs/direct_delivery.hpp>

#include "data/sanitized.hpp"
#include "kernels/emulated_teams.hpp"
#include "nic/direct_queue.hpp"
#include "transport/team_doubles.hpp"

#include <ferry/exec/cpu/cpu_team.hpp>
#include <ferry/transport/mapped.hpp>

#include <gtest/gtest.h>

#include <array>

namespace ferry::test {
namespace {

using namespace std::chrono_literals;
using device_verbs::cpu_nic_access;
using device_verbs::host_patience;

template <class Format>
using delivery_of =
    device_verbs::direct_delivery<Format, cpu_nic_access, mapped_delivery, host_patience>;
static_assert(delivery<delivery_of<device_verbs::mlx5>, cpu_team<void>>);
static_assert(delivery<delivery_of<device_verbs::bnxt>, emulated_team<32>>);
static_assert(delivery<delivery_of<device_verbs::ionic>, emulated_team<64>>);

/// Rank 0's view of 4 ranks: itself mapped, 1 to 3 behind a NIC with a queue each.
template <class Format>
struct four_ranks {
  static constexpr std::size_t put_bytes = 256;
  static constexpr std::uint32_t entries = 16;
  std::shared_ptr<registered_memory> memory = std::make_shared<registered_memory>();
  std::array<window, 4> windows{window::plain(1 << 15).value(), window::plain(1 << 15).value(),
                                window::plain(1 << 15).value(), window::plain(1 << 15).value()};
  window staging = window::plain(4 * entries * put_bytes).value();
  emulated_nic nic;
  std::array<std::byte*, 4> table{windows[0].data(), nullptr, nullptr, nullptr};
  std::array<device_verbs::queue_counters, 4> counters{};
  std::array<device_verbs::direct_reach<Format, cpu_nic_access>, 4> peers{};
  delivery_of<Format> net;

  four_ranks(nic_vendor vendor, nic_faults f)
      : nic(1, vendor, memory, f),
        net{{table.data(), 0, 1 << 14}, peers.data(), put_bytes, host_patience(20s)} {
    std::uint32_t const local = nic.register_memory(staging.bytes(), false).value().local;
    for (std::uint32_t r = 1; r < 4; ++r) {
      auto& p = peers[r];
      p.queue.pair = nic.make_queue(entries).value();
      counters[r] = device_verbs::start_counters<Format>(p.queue.pair);
      p.queue.counters = &counters[r];
      p.window = reinterpret_cast<std::uint64_t>(windows[r].data());
      p.window_key = memory->add({.owner = r + 1,
                                  .address = p.window,
                                  .bytes = windows[r].size(),
                                  .mapped = windows[r].data(),
                                  .by_peers = true});
      p.staging_key = local;
      p.staging = staging.data() + r * entries * put_bytes;
      std::uint32_t const endpoint[2] = {r + 1, 0x1234};
      nic.connect(p.queue.pair, std::as_bytes(std::span(endpoint))).value();
    }
  }
  std::uint64_t word(std::size_t rank, std::size_t at) const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(windows[rank].data() + at))
        .load(std::memory_order_acquire);
  }
};

/// Steps of rows to all peers: rows by the team, words by one lane a peer, as kernels do it.
template <class Format>
struct send_steps {
  four_ranks<Format>* ranks;
  std::uint64_t steps;
  int* wrong;
  static constexpr std::size_t row_bytes = 700, rows = 5;  // three puts a row

  template <class Team, class Net>
  void operator()(Team const& t, Net const& net) const {
    std::array<std::byte, row_bytes> row{};
    for (std::uint64_t n = 1; n <= steps; ++n) {
      for (std::size_t i = 0; i < rows; ++i)
        for (int to = 0; to < 4; ++to) {
          row.fill(static_cast<std::byte>(n * 16 + i * 4 + static_cast<std::uint64_t>(to)));
          net.put(t, to, 64 + i * row_bytes, row.data(), row_bytes);
          row.fill(std::byte{0xee});  // it may be used again
          t.sync();
        }
      t.drain();
      t.block_sync();
      for (int to = t.lane(); to < 4; to += Team::lanes) net.publish(t, to, flag::done, 0, n);
      t.sync();
      if (t.leader()) look(n);
      t.sync();
    }
  }
  void look(std::uint64_t n) const {
    for (std::size_t to = 0; to < 4; ++to) {
      auto const end = std::chrono::steady_clock::now() + 20s;
      while (ranks->word(to, 0) != n && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
      if (ranks->word(to, 0) != n) ++*wrong;
      for (std::size_t b = 0; b < rows * row_bytes; ++b)
        if (ranks->windows[to].data()[64 + b] !=
            static_cast<std::byte>(n * 16 + b / row_bytes * 4 + to))
          ++*wrong;
    }
  }
};

class direct_delivery : public ::testing::TestWithParam<nic_vendor> {};

template <int Lanes, class Format>
void send_by_lanes(nic_vendor vendor) {
  SCOPED_TRACE(Lanes);
  // It pauses now and then, so that it finds several entries to choose from.
  four_ranks<Format> ranks(
      vendor, {.seed = 11, .reorder = 1000, .delay = 100, .longest_delay = 500us, .late = 50});
  int wrong = 0;
  send_steps<Format> const kernel{&ranks, Lanes == 1 ? 40 : 6, &wrong};
  std::uint32_t asleep[1] = {};
  status_record status{};
  waiter waits({}, asleep, &status, {});
  std::byte scratch[64];
  if constexpr (Lanes == 1) {
    struct level {};
    kernel(cpu_team<level>(0, 1, waits, scratch, nullptr), ranks.net);
  } else {
    ASSERT_TRUE(run_on_teams<Lanes>({}, 5, {}, [&](auto const& t) { kernel(t, ranks.net); }));
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(ranks.nic.refusals().empty());
  // Lanes that are played post so slowly that the NIC may keep up with them.
  if (Lanes == 1) {
    EXPECT_GT(ranks.nic.counts().out_of_order, 0u);
  }
}

TEST_P(direct_delivery, shows_words_after_rows_to_every_peer_from_teams_of_any_width) {
  device_verbs::with_format(GetParam(), [&]<class Format>(Format) {
    send_by_lanes<1, Format>(GetParam());
    // Fibers switch stacks in a way that sanitizers do not follow.
    if (is_sanitized) return;
    send_by_lanes<32, Format>(GetParam());
    send_by_lanes<64, Format>(GetParam());
  });
}

TEST_P(direct_delivery, posts_nothing_to_a_queue_that_failed_and_reaches_the_others) {
  device_verbs::with_format(GetParam(), [&]<class Format>(Format) {
    four_ranks<Format> ranks(GetParam(), {});
    ranks.peers[2].window_key ^= 1;
    std::uint64_t const row = 5;
    auto const* const from = reinterpret_cast<std::byte const*>(&row);
    for (int to = 0; to < 4; ++to) {
      ranks.net.put(idle_team{}, to, 64, from, 8);
      ranks.net.publish(idle_team{}, to, flag::done, 0, 9);
    }
    auto const end = std::chrono::steady_clock::now() + 20s;
    for (std::size_t to : {0, 1, 3})
      while (ranks.word(to, 0) != 9 && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
    for (std::size_t to : {0, 1, 3}) EXPECT_EQ(ranks.word(to, 64), 5u);
    auto& broken = ranks.peers[2].queue;
    while (broken.status() == nic_status::ok && std::chrono::steady_clock::now() < end)
      broken.poll();
    EXPECT_EQ(broken.status(), nic_status::remote_access);
    auto const before = ranks.counters[2].published;
    ranks.net.publish(idle_team{}, 2, flag::done, 0, 10);
    ranks.net.put(idle_team{}, 2, 64, from, 8);
    EXPECT_EQ(ranks.counters[2].published, before);
    EXPECT_EQ(ranks.word(2, 0), 0u);
  });
}

INSTANTIATE_TEST_SUITE_P(every, direct_delivery, ::testing::ValuesIn(all_vendors),
                         [](auto const& c) { return device_verbs::to_string(c.param); });

}  // namespace
}  // namespace ferry::test
