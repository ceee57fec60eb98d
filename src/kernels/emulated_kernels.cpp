// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "kernels/emulated_kernels.hpp"

#include "base/fail.hpp"
#include "exec/emulated/emulated_backend.hpp"
#include "exec/emulated/emulated_memory.hpp"

#include <ferry/exec/emulated/emulated_device.hpp>
#include <ferry/kernels/row_forms.hpp>
#include <ferry/transport/peer_memory.hpp>

#include <atomic>
#include <string>
#include <vector>

namespace ferry {
namespace {

// Teams that the device is said to hold at once; it has no limit of its own.
constexpr int resident_teams = 2048;

template <int Lanes>
using emulated_team = gpu_team<emulated_device<Lanes>>;
template <int Lanes>
using emulated_delivery = peer_memory_delivery<emulated_device<Lanes>>;
using width = emulated_widths;
static_assert(delivery<emulated_delivery<width::narrow>, emulated_team<width::narrow>>);
static_assert(delivery<emulated_delivery<width::wide>, emulated_team<width::wide>>);

// The kernel in the form of rows that it takes on a GPU.
template <class Team, class Net>
void run(send_rows const& k, Team const& t, Net const& net) {
  switch (form_of(k, Team::lanes)) {
    case send_form::memory: return k.run<memory_rows>(t, net);
    case send_form::copied: return k.run<copied_rows>(t, net);
    case send_form::e4m3: return k.run<quantised_e4m3>(t, net);
    case send_form::e4m3fnuz: return k.run<quantised_e4m3fnuz>(t, net);
    case send_form::power: return k.run<quantised_power>(t, net);
  }
}
template <class Team, class Net>
void run(receive_rows const& k, Team const& t, Net const& net) {
  k(t, net);
}
template <class Team, class Net>
void run(probe_windows const& k, Team const& t, Net const& net) {
  k(t, net);
}
template <class Team, class Net>
void run(credit_round const& k, Team const& t, Net const& net) {
  k(t, net);
}
template <class Team, class Net>
void run(return_rows const& k, Team const& t, Net const& net) {
  form_of(k) == return_form::bf16 ? k.run<bf16_sums>(t, net) : k.run<memory_sums>(t, net);
}
template <class Team, class Net>
void run(gather_rows const& k, Team const& t, Net const& net) {
  form_of(k) == gather_form::bf16 ? k.run<bf16_gather>(t, net) : k.run<memory_gather>(t, net);
}

/// Turns the device addresses of a launch into those where its memory lies.
class translator {
 public:
  template <class... T>
  void operator()(T*&... pointers) {
    (one(pointers), ...);
  }
  /// A base that may lie outside of its allocation: `offset` lies within.
  void base(std::byte*& pointer, std::size_t offset) {
    if (!pointer) return;
    std::byte* at = pointer + offset;
    one(at);
    pointer = at - offset;
  }
  result<void> const& outcome() const { return outcome_; }

 private:
  template <class T>
  void one(T*& pointer) {
    result<void*> const there = emulated_memory::reached_by_device(pointer);
    if (there)
      pointer = static_cast<T*>(*there);
    else if (outcome_)
      outcome_ = there.error();
  }
  result<void> outcome_;
};

void translate(translator& to, step_frame& f) {
  step_memory& m = f.memory;
  to(m.choices, m.weights, m.num_tokens, m.expert_counts, m.seen_tokens, m.rounds, m.maps, m.plan,
     m.plan_weights, m.cursors, m.starts, m.counts, m.wanted, m.end, m.index, m.rows, m.scales,
     m.ticks, m.tallies, m.receives_fnuz, m.owners);
  to(f.placed.first, f.placed.candidates, f.placed.loads, f.placed.samples);
}
void translate(translator& to, send_rows& k) {
  translate(to, k.frame);
  to(k.tokens, k.scales, k.caller.ids, k.caller.weights, k.num_tokens_there);
}
void translate(translator& to, receive_rows& k) {
  translate(to, k.frame);
}
void translate(translator& to, probe_windows& k) {
  translate(to, k.frame);
  to(k.wrong);
}
void translate(translator& to, credit_round& k) {
  translate(to, k.frame);
}
void translate(translator& to, return_rows& k) {
  translate(to, k.frame);
  to(k.rows);
}
void translate(translator& to, gather_rows& k) {
  translate(to, k.frame);
  to(k.output, k.added);
}

template <class Kernel>
result<void> translate(gpu_launch& with, Kernel& kernel) {
  translator to;
  for (int r = 0; r < kernel.frame.shape.ranks; ++r) {
    to.base(with.peers.flags[r], kernel.frame.flags_offset);
    to.base(with.peers.rows[r], kernel.frame.slot_offset);
  }
  to(with.scratch, with.waits.status, with.waits.failed, with.waits.told);
  translate(to, kernel);
  return to.outcome();
}

std::string& last_message() {
  static thread_local std::string text;
  return text;
}

template <int Lanes, class Kernel>
int launch(gpu_launch const& with, Kernel const& kernel) {
  gpu_launch there = with;
  Kernel args = kernel;
  if (result<void> const fine = translate(there, args); !fine) {
    last_message() = fine.error().message;
    return 1 + static_cast<int>(fine.error().code);
  }
  static std::atomic<std::uint64_t> launches = 0;
  result<void> const put = emulated_stream(with.stream).put([there, args]() -> result<void> {
    lane_launch lanes({there.blocks, there.teams}, Lanes, ++launches);
    std::vector<gpu_block_memory> memory(static_cast<std::size_t>(there.blocks));
    return lanes.run([&] {
      auto const block = static_cast<std::size_t>(lanes.block());
      emulated_team<Lanes> const team(there.blocks, there.teams, there.waits, memory[block],
                                      there.scratch, there.scratch_stride);
      run(args, team,
          emulated_delivery<Lanes>(there.peers, there.peers.flags[there.peers.rank],
                                   there.peers.rows[there.peers.rank]));
    });
  });
  if (put) return 0;
  last_message() = put.error().message;
  return 1 + static_cast<int>(put.error().code);
}

int load() {
  return 0;
}
int resident_blocks(gpu_kernel, int teams, int* blocks) {
  *blocks = resident_teams / teams;
  return 0;
}
char const* describe(int) {
  return last_message().c_str();
}

template <int Lanes>
constexpr gpu_kernels table{Lanes,
                            16,
                            launch<Lanes, send_rows>,
                            launch<Lanes, receive_rows>,
                            launch<Lanes, credit_round>,
                            launch<Lanes, return_rows>,
                            launch<Lanes, gather_rows>,
                            launch<Lanes, probe_windows>,
                            load,
                            resident_blocks,
                            describe};

}  // namespace

gpu_kernels const& emulated_kernels(int lanes) {
  return lanes == width::narrow ? table<width::narrow> : table<width::wide>;
}

}  // namespace ferry
