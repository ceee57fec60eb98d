// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/kernels/probe.hpp>

#include "kernels/emulated_teams.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace {

using namespace ferry;

using lanes_of = emulated_team<32>;

// What a fabric or a memory of the wrong kind may do to the last piece.
enum class fault { none, loses, brings_late };

struct faulty_delivery {
  emulated_delivery<32> net;
  fault how;
  std::uint32_t last;
  piece* held;  ///< by rank

  std::byte* own_flags() const { return net.own_flags(); }
  std::byte* own_rows() const { return net.own_rows(); }
  void put(lanes_of const& t, int to, std::size_t offset, std::byte const* from,
           std::size_t bytes) const {
    net.put(t, to, offset, from, bytes);
  }
  template <class T>
  void put_value(lanes_of const& t, int to, std::size_t offset, std::uint32_t at,
                 T const& value) const {
    if constexpr (std::is_same_v<T, piece>) {
      if (at == last && how == fault::loses) return;
      if (at == last && how == fault::brings_late) {
        net.put_value(t, to, offset, at, std::exchange(held[to], value));
        return;
      }
    }
    net.put_value(t, to, offset, at, value);
  }
  void release(lanes_of const& t) const { net.release(t); }
  void publish(lanes_of const& t, int to, flag kind, std::size_t offset, std::uint64_t word) const {
    net.publish(t, to, kind, offset, word);
  }
};
static_assert(delivery<faulty_delivery, lanes_of>);

struct probed {
  std::uint32_t wrong = 0;
  bool failed = false;
};

// Two ranks, of which rank 0 delivers with a fault.
std::vector<probed> run_probe(fault how, int rounds, std::size_t row_bytes, int silent = -1) {
  constexpr int ranks = 2;
  exchange_shape shape{.ranks = ranks, .experts = 2, .max_tokens = 3, .round_tokens = 3};
  shape.row_bytes = shape.home_bytes = row_bytes;
  window_layout const window = lay_out_window(shape, 1);
  std::vector<std::vector<piece>> memory(ranks, std::vector<piece>(window.bytes() / 16 + 16));
  std::vector<status_record> status(ranks);
  std::vector<std::uint32_t> failed(ranks), told(ranks);
  std::vector<probed> seen(ranks);
  auto const rank = [&](int r) {
    auto const i = static_cast<std::size_t>(r);
    peer_table peers;
    peers.rank = r;
    for (int p = 0; p < ranks; ++p)
      peers.flags[p] = peers.rows[p] =
          reinterpret_cast<std::byte*>(memory[static_cast<std::size_t>(p)].data());
    probe_windows probe{{}, rounds, &seen[i].wrong};
    probe.frame.shape = shape;
    probe.frame.shape.rank = r;
    probe.frame.flags = lay_out_flags(shape);
    probe.frame.slot = lay_out_slot(shape);
    probe.frame.flags_offset = window.offset(window_field::flags);
    probe.frame.slot_offset = window.offset(window_field::rows);
    gpu_waits const waits{.status = &status[i],
                          .failed = &failed[i],
                          .timeout = 200'000'000,
                          .patience = 50'000'000,
                          .told = &told[i]};
    piece held[ranks] = {};
    std::vector<std::byte> scratch(2 * 64);
    auto const last = static_cast<std::uint32_t>(16 * (probe.pieces() - 1));
    auto const seed = static_cast<std::uint64_t>(r + 1);
    run_on_teams<32>({1, 2}, seed, {waits, scratch.data(), 64}, [&](lanes_of const& t) {
      probe(t, faulty_delivery{emulated_delivery<32>(peers, peers.flags[r], peers.rows[r]),
                               r == 0 ? how : fault::none, last, held});
    }).value();
    seen[i].failed = told[i] != 0;
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    if (r != silent) threads.emplace_back(rank, r);
  for (std::thread& t : threads) t.join();
  return seen;
}

TEST(probe, finds_nothing_wrong_with_windows_that_behave) {
  for (std::size_t row_bytes : {1u, 100u, 5000u})
    for (probed const& p : run_probe(fault::none, 20, row_bytes)) {
      EXPECT_EQ(p.wrong, 0u);
      EXPECT_FALSE(p.failed);
    }
}

TEST(probe, counts_a_piece_that_never_comes_on_every_rank) {
  for (probed const& p : run_probe(fault::loses, 20, 100)) EXPECT_EQ(p.wrong, 20u);
}

TEST(probe, counts_a_piece_that_comes_after_its_word) {
  for (probed const& p : run_probe(fault::brings_late, 20, 5000)) EXPECT_GE(p.wrong, 19u);
}

TEST(probe, gives_up_when_a_peer_says_nothing) {
  std::vector<probed> const seen = run_probe(fault::none, 3, 100, 1);
  EXPECT_TRUE(seen[0].failed);
}

}  // namespace
