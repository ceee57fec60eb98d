// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "kernels/emulated_kernels.hpp"

#include "base/fail.hpp"
#include "exec/emulated/emulated_backend.hpp"
#include "exec/emulated/emulated_memory.hpp"

#include <ferry/exec/emulated/emulated_team.hpp>
#include <ferry/transport/copy_row.hpp>

#include <atomic>
#include <string>

namespace ferry {
namespace {

// Teams that the device is said to hold at once; it has no limit of its own.
constexpr int resident_teams = 2048;

/// Delivery through the addresses that a launch was given, already translated.
struct emulated_delivery {
  peer_table const* peers;

  std::byte* own_flags() const { return peers->flags[peers->rank]; }
  std::byte* own_rows() const { return peers->rows[peers->rank]; }
  template <team Team>
  void put(Team const& t, int to, std::size_t offset, std::byte const* from,
           std::size_t bytes) const {
    copy_row(t, peers->rows[to] + offset, from, bytes);
  }
  template <team Team>
  void release(Team const& t) const {
    t.sync();
  }
  template <team Team>
  void publish(Team const&, int to, flag, std::size_t offset, std::uint64_t word) const {
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(peers->flags[to] + offset))
        .store(word, std::memory_order_release);
  }
};

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
  to(m.choices, m.weights, m.num_tokens, m.expert_counts, m.chunk_maps, m.seen_tokens, m.rounds,
     m.maps, m.plan, m.plan_weights, m.cursors, m.starts, m.counts, m.wanted, m.end, m.index,
     m.rows, m.scales, m.ticks, m.tallies, m.receives_fnuz, m.owners);
}
void translate(translator& to, send_rows& k) {
  translate(to, k.frame);
  to(k.tokens, k.scales, k.caller.ids, k.caller.weights, k.num_tokens_there);
}
void translate(translator& to, receive_rows& k) {
  translate(to, k.frame);
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
  emulated_stream(with.stream).put([there, args]() -> result<void> {
    emulated_waits const waits{there.waits.status,
                               there.waits.failed,
                               there.waits.told,
                               std::chrono::nanoseconds(there.waits.timeout),
                               std::chrono::nanoseconds(there.waits.patience),
                               there.waits.slot};
    return run_on_lanes<Lanes>({there.blocks, there.teams}, ++launches, waits, there.scratch,
                               there.scratch_stride, args, emulated_delivery{&there.peers});
  });
  return 0;
}

int load() {
  return 0;
}
int resident_blocks(gpu_kernel, exchange_shape const&, int teams, int* blocks) {
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
                            load,
                            resident_blocks,
                            describe};

}  // namespace

gpu_kernels const& emulated_kernels(int lanes) {
  return lanes == 32 ? table<32> : table<64>;
}

}  // namespace ferry
