// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The kernels of two hops on teams of 32 and 64 lanes, as a GPU runs them, against those of CPU
// teams: the same bits in every window.

#include "kernels/emulated_teams.hpp"
#include "kernels/sent_step.hpp"

#include <gtest/gtest.h>

namespace {

using namespace ferry;
using namespace ferry::oracle;

template <int Lanes, class Kernel>
void run_on(all_ranks& ranks, int r, Kernel const& kernel) {
  gpu_launch const with = ranks.launch_of(r);
  std::byte* const own = ranks.rank(r).window.data();
  run_on_teams<Lanes>({with.blocks, with.teams}, static_cast<std::uint64_t>(r) + 1,
                      {with.waits, with.scratch, with.scratch_stride},
                      [&](emulated_team<Lanes> const& t) {
                        kernel(t, emulated_delivery<Lanes>(with.peers, own, own));
                      })
      .value();
}

// Dispatch and combine of one step; the experts' rows are some function of their positions.
template <class Run>
std::vector<buffer> windows_after(world const& w, all_ranks& ranks, Run const& run) {
  dice from(7);
  std::vector<std::unique_ptr<brought_memory>> brought;
  auto const relay = [&](int r) -> relay_slot const& { return *ranks.rank(r).slot->relay; };
  auto const all = [&](auto const& make) {
    for (int r = 0; r < w.ranks; ++r) run(r, make(r));
  };
  for (int r = 0; r < w.ranks; ++r)
    brought.push_back(
        std::make_unique<brought_memory>(w, w.steps[0].brought[static_cast<std::size_t>(r)], from));
  all([&](int r) {
    send_rows k = ranks.sending(r, brought[static_cast<std::size_t>(r)]->input);
    k.frame = relay(r).by_node;
    return by_nodes<send_rows>{k, relay(r).frame};
  });
  all([&](int r) { return forward_rows{relay(r).forwarding, relay(r).frame}; });
  all([&](int r) {
    return by_nodes<receive_rows>{receive_rows{ranks.rank(r).frame()}, relay(r).frame};
  });
  std::vector<typed_rows> made;
  for (int r = 0; r < w.ranks; ++r) {
    int const end = *ranks.rank(r).memory().end;
    made.emplace_back(end, w.options.hidden, dtype::f32, 0);
    for (int p = 0; p < end; ++p)
      for (int c = 0; c < w.options.hidden; ++c)
        made.back().set(p, c, static_cast<float>((r * 31 + p * 7 + c) % 101));
  }
  all([&](int r) {
    tensor const rows = made[static_cast<std::size_t>(r)].view();
    return by_nodes<return_rows>{return_rows{.frame = ranks.rank(r).frame(),
                                             .rows = rows.data,
                                             .row_stride = rows.stride_bytes(),
                                             .type = rows.type},
                                 relay(r).frame};
  });
  all([&](int r) { return forward_sums{relay(r).forwarding, relay(r).frame}; });
  EXPECT_FALSE(ranks.failed());
  std::vector<buffer> copies;
  for (int r = 0; r < w.ranks; ++r) {
    copies.push_back(buffer::allocate(ranks.rank(r).core.window.bytes()).value());
    std::memcpy(copies.back().data(), ranks.rank(r).window.data(), copies.back().size());
  }
  return copies;
}

template <int Lanes>
void expect_the_bits_of_cpu_teams(world const& w, std::uint64_t seed) {
  all_ranks plain(w, code_level::v2);
  auto const wanted =
      windows_after(w, plain, [&](int r, auto const& kernel) { plain.run(r, kernel); });
  all_ranks wide(w, Lanes, {w.options.blocks, 2});
  auto const got =
      windows_after(w, wide, [&](int r, auto const& kernel) { run_on<Lanes>(wide, r, kernel); });
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    // Sleepers' counters and status are no part of it.
    std::size_t const first = plain.rank(0).core.window.offset(window_field::flags);
    EXPECT_EQ(
        std::memcmp(wanted[r].data() + first, got[r].data() + first, wanted[r].size() - first), 0)
        << "rank " << r << ", " << Lanes << " lanes, seed " << seed;
  }
}

TEST(relay_lanes, give_the_bits_of_cpu_teams) {
  constexpr wire wires[] = {wire::f32, wire::bf16, wire::fp8_e4m3, wire::fp8_ue8m0};
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    world w = in_two_hops(some_nodes(seed, wires[seed % 4]));
    w.options.blocks = 1 + static_cast<int>(seed % 3);
    w.options.expert_rows = dtype::f32;
    w.options.combine_wire = seed % 2 ? wire::f32 : wire::bf16;
    if (seed % 3 == 0) w.options.reduction = reduction::per_choice;
    if (seed % 2)
      expect_the_bits_of_cpu_teams<32>(w, seed);
    else
      expect_the_bits_of_cpu_teams<64>(w, seed);
    if (HasFailure()) return;
  }
}

}  // namespace
