// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/emulated_row_kernels.hpp"

#include "base/fail.hpp"
#include "exec/emulated/emulated_backend.hpp"
#include "exec/emulated/emulated_memory.hpp"

#include <ferry/exec/emulated/emulated_strip.hpp>

#include <atomic>
#include <string>

namespace ferry::deepseek {
namespace {

/// Turns the device addresses of a kernel into those where its memory lies.
class translator {
 public:
  template <class... T>
  void operator()(T*&... pointers) {
    (one(pointers), ...);
  }
  result<void> const& outcome() const { return outcome_; }

 private:
  template <class T>
  void one(T*& pointer) {
    result<void*> const there = emulated_memory::reached_by_device(pointer);
    if (there) {
      pointer = static_cast<T*>(*there);
    } else if (outcome_) {
      outcome_ = there.error();
    }
  }
  result<void> outcome_;
};

void translate(translator& to, attend& k) {
  to(k.queries, k.cache, k.sequences, k.positions, k.scores, k.out);
}
void translate(translator& to, gate_rows& k) {
  to(k.from.data, k.to.data, k.end);
}
void translate(translator& to, normalise_rows& k) {
  to(k.from.data, k.weight, k.to.data);
}
void translate(translator& to, add_rows& k) {
  to(k.from.data, k.to.data);
}
void translate(translator& to, narrow_rows& k) {
  to(k.from.data, k.to.data, k.end);
}
void translate(translator& to, quantise_rows& k) {
  to(k.from.data, k.to.data, k.end);
}
void translate(translator& to, decode_rows& k) {
  to(k.rows, k.scales, k.index, k.end, k.to.data);
}
void translate(translator& to, rotate_heads& k) {
  to(k.from, k.to, k.positions, k.angles);
}
void translate(translator& to, fill_cache& k) {
  to(k.from.data, k.weight, k.sequences, k.positions, k.angles, k.cache);
}
void translate(translator& to, choose_experts& k) {
  to(k.logits.data, k.bias, k.choices.data, k.weights.data, k.scratch);
}
void translate(translator& to, next_token& k) {
  to(k.logits.data, k.slots, k.states, k.chosen);
}
template <class T>
void translate(translator& to, grouped_product<T>& k) {
  to(k.x, k.weights, k.y, k.starts, k.counts);
}

std::string& last_message() {
  static thread_local std::string text;
  return text;
}

template <class Kernel>
int launch_on(int lanes, strip_launch const& with, Kernel const& kernel) {
  translator to;
  Kernel there = kernel;
  translate(to, there);
  result<void> fine = check_current_emulated(lanes);
  if (fine) fine = to.outcome();
  if (!fine) {
    last_message() = fine.error().message;
    return 1 + static_cast<int>(fine.error().code);
  }
  static std::atomic<std::uint64_t> launches = 0;
  result<void> const put =
      emulated_stream(with.stream).put([=, grid = lane_grid{with.blocks, with.teams}] {
        return run_on_strips(grid, lanes, ++launches, there);
      });
  if (put) return 0;
  last_message() = put.error().message;
  return 1 + static_cast<int>(put.error().code);
}

template <class Kernel>
struct on_32 {
  static int launch(strip_launch const& with, Kernel const& k) { return launch_on(32, with, k); }
};
template <class Kernel>
struct on_64 {
  static int launch(strip_launch const& with, Kernel const& k) { return launch_on(64, with, k); }
};

int load() {
  return 0;
}
char const* describe(int) {
  return last_message().c_str();
}

// Few teams: each lane costs a stack, and all share one thread.
constexpr row_kernels table_of_32{
    launches_by<on_32>(static_cast<row_launches*>(nullptr)), 32, 2, 2, load, describe};
constexpr row_kernels table_of_64{
    launches_by<on_64>(static_cast<row_launches*>(nullptr)), 64, 2, 1, load, describe};

}  // namespace

row_kernels const& emulated_row_kernels(int lanes) {
  return lanes == 32 ? table_of_32 : table_of_64;
}

}  // namespace ferry::deepseek
