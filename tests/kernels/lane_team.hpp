// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Teams of many lanes on a host: each lane is a fiber, and they run in an order drawn anew each
/// turn, so that a kernel that leaves out a barrier gives wrong rows, and one that parts at a
/// barrier stands still.
#pragma once

#include <ferry/base/float8_codes.hpp>
#include <ferry/exec/cpu/waiter.hpp>
#include <ferry/exec/team.hpp>
#include <ferry/kernels/row_forms.hpp>
#include <ferry/memory/buffer.hpp>

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <type_traits>
#include <vector>

namespace ferry::oracle {

/// Runs functions that give way to each other.
class fibers {
 public:
  explicit fibers(std::uint64_t seed) : random_(seed) {}

  /// Calls body(0) ... body(count - 1), each until it gives way or ends. False when all that are
  /// left wait for something that none of them will do.
  bool run(int count, std::function<void(int)> const& body) {
    body_ = &body;
    if (stacks().size() < static_cast<std::size_t>(count) * stack_bytes)
      stacks() = buffer::allocate(static_cast<std::size_t>(count) * stack_bytes).value();
    std::vector<std::unique_ptr<fiber>> all;
    for (int i = 0; i < count; ++i) all.push_back(start(i));
    std::vector<fiber*> left;
    for (auto& f : all) left.push_back(f.get());
    while (!left.empty()) {
      events_ = 0;
      std::shuffle(left.begin(), left.end(), random_);
      for (fiber* f : left) {
        current_ = f;
        if (_setjmp(scheduler_) == 0) resume(*f);
      }
      events_ += static_cast<int>(std::erase_if(left, [](fiber* f) { return f->ended; }));
      if (events_ == 0) return false;
    }
    return true;
  }
  void give_way() {
    if (_setjmp(current_->at) == 0) _longjmp(scheduler_, 1);
  }
  /// To be called when something happened that others may wait for.
  void happened() { ++events_; }

 private:
  struct fiber {
    ucontext_t context;  ///< where it begins; from then on `at`: jumps need no system call
    jmp_buf at;
    bool begun = false;
    fibers* of;
    int index;
    bool ended = false;
  };

  static constexpr std::size_t stack_bytes = 64 << 10;
  /// Kept from launch to launch: new pages cost more than the kernels.
  static buffer& stacks() {
    static buffer all;
    return all;
  }

  std::unique_ptr<fiber> start(int index) {
    auto f = std::make_unique<fiber>();
    f->of = this;
    f->index = index;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = stacks().data() + static_cast<std::size_t>(index) * stack_bytes;
    f->context.uc_stack.ss_size = stack_bytes;
    f->context.uc_link = nullptr;
    auto const at = reinterpret_cast<std::uintptr_t>(f.get());
    makecontext(&f->context, reinterpret_cast<void (*)()>(&enter), 2,
                static_cast<unsigned>(at >> 32), static_cast<unsigned>(at));
    return f;
  }
  static void enter(unsigned high, unsigned low) {
    auto* const f = reinterpret_cast<fiber*>(static_cast<std::uintptr_t>(high) << 32 | low);
    (*f->of->body_)(f->index);
    f->ended = true;
    _longjmp(f->of->scheduler_, 1);
  }
  static void resume(fiber& f) {
    if (f.begun) _longjmp(f.at, 1);
    f.begun = true;
    setcontext(&f.context);
  }

  std::mt19937_64 random_;
  std::function<void(int)> const* body_ = nullptr;
  jmp_buf scheduler_;
  fiber* current_ = nullptr;
  int events_ = 0;
};

/// A barrier of fibers, and a place for each of them to leave a number.
class meeting_place {
 public:
  meeting_place(fibers& f, int size)
      : fibers_(f), size_(size), left_(static_cast<std::size_t>(size)) {}

  void meet() {
    std::uint64_t const turn = turn_;
    if (++here_ == size_) {
      here_ = 0;
      ++turn_;
      fibers_.happened();
    }
    while (turn_ == turn) fibers_.give_way();
  }
  /// Leaves `value`, meets, and returns what f makes of all values; then meets again.
  template <class F>
  auto share(int who, double value, F const& f) {
    left_[static_cast<std::size_t>(who)] = value;
    meet();
    auto const made = f(left_);
    meet();
    return made;
  }

 private:
  fibers& fibers_;
  int size_;
  int here_ = 0;
  std::uint64_t turn_ = 0;
  std::vector<double> left_;
};

/// How many teams a launch has.
struct lane_grid {
  int blocks = 1;
  int teams = 1;  ///< per block
};

/// One lane of a team, as the concept asks.
template <int Lanes>
class lane_team {
 public:
  static constexpr int lanes = Lanes;
  static constexpr int columns = 16;
  static constexpr int row_pieces = 2;  // few, so that short rows have several parts
  using chunk = piece;
  using codes = software_codes;
  using mask = std::conditional_t<(Lanes > 32), std::uint64_t, std::uint32_t>;

  struct places {
    meeting_place* team;
    meeting_place* block;
    waiter* waits;
    std::byte* scratch;
    std::byte* block_scratch;
  };
  lane_team(lane_grid grid, int block, int index, int lane, places const& p)
      : grid_(grid), block_(block), index_(index), lane_(lane), places_(p) {}

  int lane() const { return lane_; }
  bool leader() const { return lane_ == 0; }
  int index() const { return index_; }
  int count() const { return grid_.teams; }
  int block() const { return block_; }
  int blocks() const { return grid_.blocks; }

  template <class T>
  T broadcast(T value, int lane) const {
    return places_.team->share(lane_, static_cast<double>(value), [&](auto const& all) {
      return static_cast<T>(all[static_cast<std::size_t>(lane)]);
    });
  }
  bool any(bool b) const { return ballot(b) != 0; }
  mask ballot(bool b) const {
    return places_.team->share(lane_, b, [&](auto const& all) {
      mask m = 0;
      for (int i = 0; i < Lanes; ++i)
        if (all[static_cast<std::size_t>(i)] != 0) m |= mask{1} << i;
      return m;
    });
  }
  template <int Group>
  float max_over(float value) const {
    return places_.team->share(lane_, value, [&](auto const& all) {
      auto const first = all.begin() + lane_ / Group * Group;
      return static_cast<float>(*std::max_element(first, first + Group));
    });
  }
  std::int64_t sum_to(std::int64_t value) const {
    return places_.team->share(lane_, static_cast<double>(value), [&](auto const& all) {
      double sum = 0;
      for (int i = 0; i <= lane_; ++i) sum += all[static_cast<std::size_t>(i)];
      return static_cast<std::int64_t>(sum);
    });
  }
  piece load_piece(std::byte const* from) const { return *reinterpret_cast<piece const*>(from); }
  void store_piece(std::byte* to, piece const& v) const { *reinterpret_cast<piece*>(to) = v; }
  void sync() const { places_.team->meet(); }
  void drain() const { places_.team->meet(); }
  void block_sync() const { places_.block->meet(); }
  bool block_all(bool b) const {
    int const who = index_ * Lanes + lane_;
    return places_.block->share(who, b, [](auto const& all) {
      return std::all_of(all.begin(), all.end(), [](double v) { return v != 0; });
    });
  }
  template <class T>
  T fetch_add(T* at, T value) const {
    T const before = *at;
    *at = before + value;
    return before;
  }
  bool wait(awaited const& what, std::uint64_t const* word, std::uint64_t& value) const {
    return places_.waits->wait(what, word, value);
  }
  bool failed() const { return places_.waits->failed(); }
  std::byte* row_scratch() const { return places_.scratch; }
  std::byte* block_scratch() const { return places_.block_scratch; }

 private:
  lane_grid grid_;
  int block_, index_, lane_;
  places places_;
};
static_assert(team<lane_team<32>> && team<lane_team<64>>);

/// Runs a kernel in the form that a device would run it in.
template <class Team, class Net>
void run_form(send_rows const& k, Team const& t, Net const& net) {
  switch (form_of(k, Team::lanes)) {
    case send_form::memory: return k.run<memory_rows>(t, net);
    case send_form::copied: return k.run<copied_rows>(t, net);
    case send_form::e4m3: return k.run<quantised_e4m3>(t, net);
    case send_form::e4m3fnuz: return k.run<quantised_e4m3fnuz>(t, net);
    case send_form::power: return k.run<quantised_power>(t, net);
  }
}
template <class Team, class Net>
void run_form(return_rows const& k, Team const& t, Net const& net) {
  if (form_of(k) == return_form::bf16) return k.run<bf16_sums>(t, net);
  k(t, net);
}
template <class Team, class Net>
void run_form(gather_rows const& k, Team const& t, Net const& net) {
  if (form_of(k) == gather_form::bf16) return k.run<bf16_gather>(t, net);
  k(t, net);
}
template <class Kernel, class Team, class Net>
void run_form(Kernel const& k, Team const& t, Net const& net) {
  k(t, net);
}

/// Where a block's scratch begins behind its first team's; kernels without a frame have none.
template <class Kernel>
std::size_t before_block_scratch(Kernel const& kernel) {
  if constexpr (requires { kernel.frame; })
    return row_scratch_bytes(kernel.frame.shape);
  else
    return 0;
}

/// Runs a kernel on a grid of such teams. False when lanes parted at a barrier.
template <int Lanes, class Kernel, class Net>
bool run_on_lanes(lane_grid grid, std::uint64_t seed, waiter& waits, std::byte* scratch,
                  std::size_t scratch_stride, Kernel const& kernel, Net const& net) {
  fibers all(seed);
  std::vector<meeting_place> teams, blocks;
  for (int b = 0; b < grid.blocks; ++b) blocks.emplace_back(all, grid.teams * Lanes);
  for (int t = 0; t < grid.blocks * grid.teams; ++t) teams.emplace_back(all, Lanes);
  return all.run(grid.blocks * grid.teams * Lanes, [&](int i) {
    int const number = i / Lanes, block = number / grid.teams;
    auto const n = static_cast<std::size_t>(number);
    auto const first = static_cast<std::size_t>(block * grid.teams);
    run_form(kernel,
             lane_team<Lanes>(grid, block, number % grid.teams, i % Lanes,
                              {&teams[n], &blocks[static_cast<std::size_t>(block)], &waits,
                               scratch + n * scratch_stride,
                               scratch + first * scratch_stride + before_block_scratch(kernel)}),
             net);
  });
}

}  // namespace ferry::oracle
