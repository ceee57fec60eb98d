// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// All ranks of an exchange in one thread: every kernel runs on one rank after the other, so that
/// whatever it waits for is there, or never comes.
#pragma once

#include "exchange/exchange_state.hpp"
#include "exchange/random_world.hpp"
#include "exchange/rank_run.hpp"
#include "exchange/tensor_checks.hpp"
#include "kernels/cpu_kernels.hpp"
#include "kernels/emulated_kernels.hpp"

#include <ferry/exec/emulated/lane_launch.hpp>

#include <cstdlib>
#include <memory>
#include <vector>

namespace ferry::oracle {

/// What one rank owns.
struct rank_memory {
  exchange_core core;
  buffer window;
  std::optional<microbatch::state> slot;
  std::unique_ptr<waiter> waits;
  std::uint32_t lanes_failed = 0;

  step_frame const& frame() const { return slot->frame; }
  step_memory const& memory() const { return slot->frame.memory; }
  std::uint64_t& word(std::size_t offset) {
    return *reinterpret_cast<std::uint64_t*>(window.data() + offset);
  }
};

class all_ranks {
 public:
  /// Runs kernels as compiled for one code level, `blocks` teams a rank.
  all_ranks(world const& w, code_level level) : all_ranks(w, w.options.blocks, w.options.blocks) {
    kernels_ = &cpu_kernels_for(level);
    relays_ = &relay_kernels_for(level);
    for (int i = 0; i < w.ranks; ++i)
      executors_.push_back(std::make_unique<cpu_executor>(w.options.blocks));
  }
  /// Runs the same kernels on teams of 32 or 64 lanes.
  all_ranks(world const& w, int lanes, lane_grid grid)
      : all_ranks(w, grid.blocks, grid.blocks * grid.teams) {
    lanes_ = lanes;
    grid_ = grid;
  }

  rank_memory& rank(int r) { return *ranks_[static_cast<std::size_t>(r)]; }
  int size() const { return static_cast<int>(ranks_.size()); }

  template <class Kernel>
  void run(int r, Kernel const& kernel) {
    rank_memory& at = rank(r);
    mapped_delivery const net{at.core.mapped.data(), r,
                              at.core.window.offset(window_field::asleep)};
    if (kernels_) {
      cpu_launch const with{executors_[static_cast<std::size_t>(r)].get(),
                            grid_.blocks,
                            at.waits.get(),
                            at.slot->scratch,
                            at.slot->scratch_stride,
                            net,
                            nullptr};
      return run_table(with, kernel);
    }
    // Those of two hops are run on lanes by a test of their own.
    if constexpr (requires { kernel.relay; })
      std::abort();
    else
      run_on_lanes(lanes_, ++launches_, launch_of(r), kernel).value();
  }

  // Everything that a kernel waits for is there when it starts.
  gpu_launch launch_of(int r) {
    rank_memory& at = rank(r);
    gpu_launch with;
    with.blocks = grid_.blocks;
    with.teams = grid_.teams;
    with.peers.rank = r;
    for (int p = 0; p < size(); ++p)
      with.peers.flags[p] = with.peers.rows[p] = rank(p).window.data();
    with.waits = {.status = at.core.status_of(r),
                  .failed = &at.lanes_failed,
                  .timeout = 1'000'000,
                  .patience = 1'000'000};
    with.scratch = at.slot->scratch;
    with.scratch_stride = at.slot->scratch_stride;
    return with;
  }

  bool failed() {
    for (auto const& r : ranks_)
      if (r->waits->failed() || r->lanes_failed != 0) return true;
    return false;
  }

  send_rows sending(int r, dispatch_input const& input) {
    return {.frame = rank(r).frame(),
            .tokens = input.tokens.data,
            .token_stride = input.tokens.stride_bytes(),
            .type = input.tokens.type,
            .scales = input.scales.data,
            .scale_stride = input.scales.row_stride,
            .caller = {input.choices.data, input.choices.row_stride,
                       input.choices.type == id_type::int64, input.weights.data,
                       input.weights.row_stride},
            .num_tokens = static_cast<std::int32_t>(input.tokens.rows),
            .num_tokens_there = input.num_tokens};
  }

  /// A whole step, held against the oracle; each of its calls has another budget of blocks.
  void run_step(world const& w, step const& s, complaints& wrong) {
    std::vector<std::unique_ptr<brought_memory>> brought;
    std::vector<send_rows> sends;
    dice from(99);
    for (int r = 0; r < size(); ++r) {
      brought.push_back(
          std::make_unique<brought_memory>(w, s.brought[static_cast<std::size_t>(r)], from));
      sends.push_back(sending(r, brought.back()->input));
    }
    int const rounds = rank(0).core.shape.max_rounds();
    auto const send_all = [&] {
      for (int r = 0; r < size(); ++r) run(r, sends[static_cast<std::size_t>(r)]);
    };
    take_budget();
    send_all();
    take_budget();
    for (int round = 0; round < rounds; ++round) {
      for (send_rows& send : sends) send.round = round;
      if (round > 0) send_all();
      for (int r = 0; r < size(); ++r) run(r, receive_rows{rank(r).frame(), round});
      for (int r = 0; r < size() && rounds > 1; ++r) run(r, credit_round{rank(r).frame(), round});
    }
    std::vector<typed_rows> made;
    for (int r = 0; r < size(); ++r) {
      received const view = view_of(rank(r).core, rank(r).frame());
      step_check c(w, s, r, fmt::format("rank {}: ", r), wrong);
      c.groups(view);
      c.rows(view);
      made.push_back(c.experts(view));
    }
    if (s.released) return release();
    std::vector<typed_rows> outputs;
    for (int r = 0; r < size(); ++r)
      outputs.emplace_back(s.brought[static_cast<std::size_t>(r)].tokens, w.options.hidden,
                           w.options.output, 2);
    take_budget();
    for (int round = 0; round < rounds; ++round) {
      for (int r = 0; r < size() && rounds > 1; ++r) {
        send_rows& send = sends[static_cast<std::size_t>(r)];
        send.round = round;
        send.header_only = true;
        run(r, send);
      }
      for (int r = 0; r < size(); ++r) {
        tensor const rows = made[static_cast<std::size_t>(r)].view();
        run(r, return_rows{.frame = rank(r).frame(),
                           .rows = rows.data,
                           .row_stride = rows.stride_bytes(),
                           .type = rows.type,
                           .round = round});
      }
      for (int r = 0; r < size(); ++r)
        gather(s.brought[static_cast<std::size_t>(r)], r, round,
               outputs[static_cast<std::size_t>(r)]);
    }
    for (int r = 0; r < size(); ++r)
      step_check(w, s, r, fmt::format("rank {}: ", r), wrong)
          .output(outputs[static_cast<std::size_t>(r)]);
    wrong.check(!failed(), "a kernel waited for what had not been written");
  }

  void release() {
    take_budget();
    for (int r = 0; r < size(); ++r) {
      run(r, return_rows{.frame = rank(r).frame(), .credit_only = true});
      run(r, gather_rows{.frame = rank(r).frame(), .skip = true});
    }
  }

 private:
  // All blocks first, then from one up.
  void take_budget() { grid_.blocks = 1 + (most_blocks_ - 1 + budgets_++) % most_blocks_; }

  all_ranks(world const& w, int blocks, int scratches) : most_blocks_(blocks) {
    for (int r = 0; r < w.ranks; ++r) ranks_.push_back(std::make_unique<rank_memory>());
    for (int r = 0; r < w.ranks; ++r) {
      exchange_core& core = rank(r).core;
      core.options = options_of(w, r);
      core.options.blocks = scratches;
      core.shape = shape_of(core.options, r, w.ranks);
      core.layout = positions_of(core.options, core.shape).value();
      if (w.options.hops == hops::two)
        core.paths = std::make_unique<node_paths>(node_map::of_equal(w.ranks, w.ranks_per_node), r);
      core.window =
          window_of(core.options, core.shape, core.paths ? core.paths->shape : relay_shape{})
              .value();
      for (int e = 0; e < w.options.num_experts; ++e)
        core.owners.push_back(owner_of(e, w.ranks, w.options.num_experts));
      for (bool f : w.fnuz) core.receives_fnuz.push_back(static_cast<std::byte>(f));
      take_flavours(core.shape, core.receives_fnuz);
      rank(r).window = buffer::allocate(core.window.bytes()).value();
    }
    for (int r = 0; r < w.ranks; ++r) {
      exchange_core& core = rank(r).core;
      for (auto const& peer : ranks_) core.mapped.push_back(peer->window.data());
      core.readable = core.mapped;
      rank(r).slot.emplace(core, 0);
      rank(r).slot->allocate().value();
      rank(r).waits = std::make_unique<waiter>(
          waiter::settings{.timeout = std::chrono::milliseconds(1), .spin_turns = 0},
          reinterpret_cast<std::uint32_t*>(rank(r).window.data() +
                                           core.window.offset(window_field::asleep)),
          core.status_of(r), peer_watch{});
    }
  }

  void run_table(cpu_launch const& with, by_nodes<send_rows> const& k) { relays_->send(with, k); }
  void run_table(cpu_launch const& with, by_nodes<receive_rows> const& k) {
    relays_->receive(with, k);
  }
  void run_table(cpu_launch const& with, by_nodes<return_rows> const& k) {
    relays_->give_back(with, k);
  }
  void run_table(cpu_launch const& with, forward_rows const& k) { relays_->forward(with, k); }
  void run_table(cpu_launch const& with, forward_sums const& k) { relays_->forward_home(with, k); }
  void run_table(cpu_launch const& with, send_rows const& k) { kernels_->send(with, k); }
  void run_table(cpu_launch const& with, receive_rows const& k) { kernels_->receive(with, k); }
  void run_table(cpu_launch const& with, credit_round const& k) { kernels_->credit(with, k); }
  void run_table(cpu_launch const& with, return_rows const& k) { kernels_->give_back(with, k); }
  void run_table(cpu_launch const& with, gather_rows const& k) { kernels_->gather(with, k); }

  void gather(rank_step const& brought, int r, int round, typed_rows& output) {
    typed_rows added;
    if (brought.adds) {
      added = typed_rows(brought.tokens, output.view().columns, output.view().type, 1);
      for (std::size_t i = 0; i < brought.added.size(); ++i)
        added.set(static_cast<std::int64_t>(i) / output.view().columns,
                  static_cast<std::int64_t>(i) % output.view().columns, brought.added[i]);
    }
    run(r, gather_rows{.frame = rank(r).frame(),
                       .output = output.view().data,
                       .output_stride = output.view().stride_bytes(),
                       .added = brought.adds ? added.view().data : nullptr,
                       .added_stride = added.view().stride_bytes(),
                       .type = output.view().type,
                       .round = round});
  }

  std::vector<std::unique_ptr<rank_memory>> ranks_;
  std::vector<std::unique_ptr<cpu_executor>> executors_;
  cpu_kernels const* kernels_ = nullptr;
  relay_kernels const* relays_ = nullptr;
  int lanes_ = 0;
  lane_grid grid_;
  int most_blocks_;
  int budgets_ = 0;
  std::uint64_t launches_ = 0;
};

}  // namespace ferry::oracle
