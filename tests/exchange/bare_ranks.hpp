// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The host code and the compiled kernels of an exchange, without a group that would make it: a
/// test sees every window and chooses the kernels.
#pragma once

#include "exchange/exchange_state.hpp"

#include <ferry/memory/window.hpp>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace ferry::oracle {

/// One of a few ranks of this thread. Their windows are plain memory that all can reach.
struct bare_rank {
  bare_rank(exchange_options const& o, int rank, std::vector<window> const& windows,
            cpu_kernels const& kernels)
      : work_queue(queue::cpu(o.blocks).value()) {
    auto const ranks = static_cast<int>(windows.size());
    core.ranks = join(threads(1).rank(0)).value();
    core.options = o;
    core.shape = shape_of(o, rank, ranks);
    core.layout = positions_of(o, core.shape).value();
    core.window = window_of(o, core.shape).value();
    for (window const& w : windows) core.readable.push_back(w.data());
    core.mapped = core.readable;
    for (int e = 0; e < o.num_experts; ++e)
      core.owners.push_back(owner_of(e, ranks, o.num_experts));
    core.receives_fnuz.resize(windows.size());
    core.kernels = &kernels;
    std::byte* const own = core.readable[static_cast<std::size_t>(rank)];
    for (int s = 0; s < o.num_microbatches; ++s) {
      auto state = std::make_unique<microbatch::state>(core, s);
      state->allocate().value();
      state->waits = std::make_unique<waiter>(
          core.waits(s),
          reinterpret_cast<std::uint32_t*>(own + core.window.offset(window_field::asleep)),
          core.status_of(rank), peer_watch{});
      states.push_back(state.get());
      slots.emplace_back(std::move(state));
    }
  }

  cpu_launch launch_of(int slot) {
    microbatch::state& s = *states[static_cast<std::size_t>(slot)];
    return {&work_queue.executor(),
            core.options.blocks,
            s.waits.get(),
            s.scratch,
            s.scratch_stride,
            {core.mapped.data(), core.shape.rank, core.window.offset(window_field::asleep)},
            nullptr};
  }

  exchange_core core;
  queue work_queue;
  std::vector<microbatch::state*> states;
  std::vector<microbatch> slots;
};

/// All ranks of an exchange, to be stepped by one thread.
struct bare_ranks {
  bare_ranks(exchange_options const& o, int ranks,
             cpu_kernels const& kernels = cpu_kernels_for(best_code_level())) {
    for (int r = 0; r < ranks; ++r)
      windows.push_back(window::plain(window_of(o, shape_of(o, r, ranks)).value().bytes()).value());
    for (int r = 0; r < ranks; ++r)
      all.push_back(std::make_unique<bare_rank>(o, r, windows, kernels));
  }
  bare_rank& operator[](int rank) { return *all[static_cast<std::size_t>(rank)]; }
  std::vector<std::byte> bytes_of(int rank) const {
    window const& w = windows[static_cast<std::size_t>(rank)];
    return {w.data(), w.data() + w.size()};
  }

  std::vector<window> windows;
  std::vector<std::unique_ptr<bare_rank>> all;
};

}  // namespace ferry::oracle
