// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Teams of many lanes on a host: each lane is a fiber.
///
/// Lanes run in an order drawn anew each turn, so that a kernel that leaves out a barrier gives
/// wrong rows. Lanes that part at a vote or a barrier are told so, with the places where they
/// stand, instead of waiting for ever.
#pragma once

#include <ferry/exec/emulated/fibers.hpp>
#include <ferry/exec/flag.hpp>
#include <ferry/exec/team.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace ferry {

/// How many teams a launch has.
struct lane_grid {
  int blocks = 1;
  int teams = 1;  ///< per block
};

/// What the waits of a rank on such a device share. A device cannot ask what became of a peer: it
/// waits until its deadline and says what it waited for (R9); the host finds out why.
struct emulated_waits {
  status_record* status = nullptr;  ///< this rank's, in its window
  std::uint32_t* failed = nullptr;  ///< not 0 once a wait of this rank, or the host, has given up
  std::uint32_t* told = nullptr;    ///< memory that the host reads: 1 once `status` has a record
  std::chrono::nanoseconds timeout{0};
  std::chrono::nanoseconds patience{0};  ///< after which peers may know whom this rank waits for
  std::int32_t slot = 0;                 ///< for the failure record

  bool has_failed() const { return std::atomic_ref(*failed).load(std::memory_order_acquire) != 0; }
  /// Records a failure; the first one stays.
  void fail(failure const& f) const {
    std::atomic_ref state(status->failed);
    std::uint64_t none = 0;
    if (state.compare_exchange_strong(none, status_record::being_written)) {
      status->record = f;
      state.store(status_record::complete, std::memory_order_release);
      std::atomic_ref(*told).store(1, std::memory_order_release);
    }
    std::atomic_ref(*failed).store(1, std::memory_order_release);
  }
};

/// Where the lanes of a team, or of a block, meet, each at the same call.
class meeting_place {
 public:
  meeting_place(fibers& f, int size, std::string name)
      : fibers_(&f), name_(std::move(name)), left_(static_cast<std::size_t>(size)) {}

  /// Waits until all are here.
  void meet(char const* call) {
    if (here_ == 0)
      call_ = call;
    else if (std::strcmp(call_, call) != 0)
      fibers_->part("lanes have parted: one lane of " + name_ + " calls " + call +
                    " while another calls " + call_);
    std::uint64_t const turn = turn_;
    if (++here_ == static_cast<int>(left_.size())) {
      here_ = 0;
      ++turn_;
      fibers_->happened();
    }
    while (turn_ == turn) fibers_->give_way(call, name_.c_str());
  }

  /// Leaves `value`, meets, and returns what f makes of all values; then meets again.
  template <class T, class F>
  auto share(char const* call, int who, T value, F const& f) {
    static_assert(sizeof(T) <= sizeof(number) && std::is_trivially_copyable_v<T>);
    std::memcpy(&left_[static_cast<std::size_t>(who)], &value, sizeof value);
    meet(call);
    auto const made = f([&](int lane) {
      T theirs;
      std::memcpy(&theirs, &left_[static_cast<std::size_t>(lane)], sizeof theirs);
      return theirs;
    });
    meet(call);
    return made;
  }

 private:
  struct number {
    std::uint64_t bits[2];
  };
  fibers* fibers_;
  std::string name_;
  std::vector<number> left_;
  char const* call_ = "";
  int here_ = 0;
  std::uint64_t turn_ = 0;
};

/// One lane of a team of `Lanes`, each converting `Columns` elements of a row at a time.
template <int Lanes, int Columns = 16>
class emulated_team {
 public:
  static constexpr int lanes = Lanes;
  static constexpr int columns = Columns;
  struct alignas(16) chunk {
    std::byte bytes[16];
  };
  using mask = std::conditional_t<(Lanes > 32), std::uint64_t, std::uint32_t>;

  struct places {
    fibers* all;
    meeting_place* team;
    meeting_place* block;
    emulated_waits const* waits;
    std::byte* scratch;
  };
  emulated_team(lane_grid grid, int block, int index, int lane, places const& p)
      : grid_(grid), block_(block), index_(index), lane_(lane), places_(p) {}

  int lane() const { return lane_; }
  bool leader() const { return lane_ == 0; }
  int index() const { return index_; }
  int count() const { return grid_.teams; }
  int block() const { return block_; }
  int blocks() const { return grid_.blocks; }

  template <class T>
  T broadcast(T value, int lane) const {
    return places_.team->share("broadcast", lane_, value, [&](auto const& of) { return of(lane); });
  }
  bool any(bool b) const { return vote("any", b) != 0; }
  mask ballot(bool b) const { return vote("ballot", b); }
  template <int Group>
  float max_over(float value) const {
    return places_.team->share("max_over", lane_, value, [&](auto const& of) {
      int const first = lane_ / Group * Group;
      float most = of(first);
      for (int i = first + 1; i < first + Group; ++i) most = std::max(most, of(i));
      return most;
    });
  }
  void sync() const { places_.team->meet("sync"); }
  void drain() const { places_.team->meet("drain"); }
  void block_sync() const { places_.block->meet("block_sync"); }
  bool block_all(bool b) const {
    return places_.block->share("block_all", index_ * Lanes + lane_, b, [&](auto const& of) {
      bool all = true;
      for (int i = 0; i < grid_.teams * Lanes; ++i) all = all && of(i);
      return all;
    });
  }
  template <class T>
  T fetch_add(T* at, T value) const {
    return std::atomic_ref(*at).fetch_add(value, std::memory_order_relaxed);
  }

  bool wait(awaited const& what, std::uint64_t const* word, std::uint64_t& value) const {
    using clock = std::chrono::steady_clock;
    std::atomic_ref const there(*const_cast<std::uint64_t*>(word));
    auto const reached = [&] {
      value = there.load(std::memory_order_acquire);
      return has_reached(what.kind, value, what.epoch);
    };
    if (reached()) return true;
    emulated_waits const& waits = *places_.waits;
    std::atomic_ref waiting(waits.status->waiting);
    std::uint64_t said = 0;
    auto const start = clock::now();
    bool arrived = false;
    while (!(arrived = reached()) && !waits.has_failed()) {
      auto const waited = clock::now() - start;
      if (waited >= waits.timeout)
        waits.fail(
            {error_code::timeout, what.rank, what, waits.slot, value >> epoch_shift(what.kind)});
      else if (waited >= waits.patience)
        waiting.store(said = 1 + static_cast<std::uint64_t>(what.rank), std::memory_order_relaxed);
      places_.all->give_way_outside();
    }
    if (said) waiting.compare_exchange_strong(said, 0, std::memory_order_relaxed);
    return arrived;
  }
  bool failed() const { return places_.waits->has_failed(); }
  std::byte* row_scratch() const { return places_.scratch; }

 private:
  mask vote(char const* call, bool b) const {
    return places_.team->share(call, lane_, b, [](auto const& of) {
      mask m = 0;
      for (int i = 0; i < Lanes; ++i)
        if (of(i)) m |= mask{1} << i;
      return m;
    });
  }

  lane_grid grid_;
  int block_, index_, lane_;
  places places_;
};
static_assert(team<emulated_team<32>> && team<emulated_team<64>>);

/// Calls kernel(lane, net) on every lane of a grid.
/// Errors   as fibers::run
template <int Lanes, class Kernel, class Net>
result<void> run_on_lanes(lane_grid grid, std::uint64_t seed, emulated_waits const& waits,
                          std::byte* scratch, std::size_t scratch_stride, Kernel const& kernel,
                          Net const& net) {
  fibers all(seed);
  std::vector<meeting_place> teams, blocks;
  for (int b = 0; b < grid.blocks; ++b) {
    std::string const name = "block " + std::to_string(b);
    blocks.emplace_back(all, grid.teams * Lanes, name);
    for (int t = 0; t < grid.teams; ++t)
      teams.emplace_back(all, Lanes, "team " + std::to_string(t) + " of " + name);
  }
  return all.run(grid.blocks * grid.teams * Lanes, [&](int i) {
    int const number = i / Lanes, block = number / grid.teams;
    auto const n = static_cast<std::size_t>(number);
    kernel(emulated_team<Lanes>(grid, block, number % grid.teams, i % Lanes,
                                {&all, &teams[n], &blocks[static_cast<std::size_t>(block)], &waits,
                                 scratch + n * scratch_stride}),
           net);
  });
}

}  // namespace ferry
