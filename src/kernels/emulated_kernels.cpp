// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "kernels/emulated_kernels.hpp"

#include "base/fail.hpp"
#include "exec/emulated/emulated_backend.hpp"
#include "exec/emulated/emulated_memory.hpp"
#include "kernels/emulated_teams.hpp"

#include <ferry/kernels/row_forms.hpp>

#include <atomic>
#include <string>

namespace ferry {
namespace {

// Teams that the device is said to hold at once; it has no limit of its own.
constexpr int resident_teams = 2048;

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
    case send_form::both: return k.run<quantised_both>(t, net);
  }
}
template <class Team, class Net>
void run(return_rows const& k, Team const& t, Net const& net) {
  form_of(k) == return_form::bf16 ? k.run<bf16_sums>(t, net) : k.run<memory_sums>(t, net);
}
template <class Team, class Net>
void run(gather_rows const& k, Team const& t, Net const& net) {
  form_of(k) == gather_form::bf16 ? k.run<bf16_gather>(t, net) : k.run<memory_gather>(t, net);
}
template <class Kernel, class Team, class Net>
void run(Kernel const& k, Team const& t, Net const& net) {
  k(t, net);
}

template <int Lanes, class Kernel>
result<void> run_now(std::uint64_t seed, gpu_launch const& with, Kernel const& kernel) {
  std::byte* const own_flags = with.peers.flags[with.peers.rank];
  std::byte* const own_rows = with.peers.rows[with.peers.rank];
  return run_on_teams<Lanes>(
      {with.blocks, with.teams}, seed, {with.waits, with.scratch, with.scratch_stride},
      [&](emulated_team<Lanes> const& team) {
        run(kernel, team, emulated_delivery<Lanes>(with.peers, own_flags, own_rows));
      });
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
  result<void> fine = check_current_emulated(Lanes);
  if (fine) fine = translate(there, args);
  if (!fine) {
    last_message() = fine.error().message;
    return 1 + static_cast<int>(fine.error().code);
  }
  static std::atomic<std::uint64_t> launches = 0;
  result<void> const put = emulated_stream(with.stream).put([there, args] {
    return run_now<Lanes>(++launches, there, args);
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

template <class Kernel>
result<void> run_on_lanes(int lanes, std::uint64_t seed, gpu_launch const& with,
                          Kernel const& kernel) {
  return lanes == width::narrow ? run_now<width::narrow>(seed, with, kernel)
                                : run_now<width::wide>(seed, with, kernel);
}
template result<void> run_on_lanes(int, std::uint64_t, gpu_launch const&, send_rows const&);
template result<void> run_on_lanes(int, std::uint64_t, gpu_launch const&, receive_rows const&);
template result<void> run_on_lanes(int, std::uint64_t, gpu_launch const&, credit_round const&);
template result<void> run_on_lanes(int, std::uint64_t, gpu_launch const&, return_rows const&);
template result<void> run_on_lanes(int, std::uint64_t, gpu_launch const&, gather_rows const&);

}  // namespace ferry
