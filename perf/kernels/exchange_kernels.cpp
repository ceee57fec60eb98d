// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// The exchange's kernels one by one, each beside a memcpy of the bytes that it cannot do without.
// `of_copy` is the copy's time over the kernel's: 1 is as fast as memcpy.

#include "lone_step.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <functional>

namespace {

using namespace ferry;
using namespace ferry::perf;
using clock_type = std::chrono::steady_clock;

double seconds(std::function<void()> const& f) {
  auto const start = clock_type::now();
  f();
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

/// What to copy for comparison: `rows` rows of `bytes` bytes, each to `times` places.
struct copies {
  std::size_t rows, bytes, times;
};

class copier {
 public:
  explicit copier(copies const& what)
      : what_(what), from_(what.rows * what.bytes, std::byte{1}), to_(from_.size() * what.times) {}
  void operator()() {
    std::byte* to = to_.data();
    for (std::size_t r = 0; r < what_.rows; ++r)
      for (std::size_t i = 0; i < what_.times; ++i, to += what_.bytes)
        std::memcpy(to, from_.data() + r * what_.bytes, what_.bytes);
    benchmark::DoNotOptimize(to_.data());
  }

 private:
  copies what_;
  std::vector<std::byte> from_, to_;
};

/// Times one call of a step, and a copy after each.
void beside_a_copy(benchmark::State& state, lone_step& step, int measured, bool sums,
                   copies const& what) {
  copier copy(what);
  double kernel = 0, copied = 0;
  for (auto _ : state) {
    std::function<void()> const calls[] = {[&] { step.send(); }, [&] { step.receive(); },
                                           [&] { sums ? step.give_back_sums() : step.give_back(); },
                                           [&] { step.gather(); }};
    for (int i = 0; i < 4; ++i) {
      double const took = seconds(calls[i]);
      if (i != measured) continue;
      state.SetIterationTime(took);
      kernel += took;
    }
    copied += seconds(copy);
  }
  state.counters["of_copy"] = copied / kernel;
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(what.rows * what.bytes * what.times));
}

lone_shape shape_of(benchmark::State const& state) {
  lone_shape s;
  s.tokens = static_cast<int>(state.range(0));
  return s;
}

void row_copy(benchmark::State& state, wire w) {
  lone_shape s = shape_of(state);
  s.wire = w;
  lone_step step(s);
  beside_a_copy(state, step, 0, false, {static_cast<std::size_t>(s.tokens), step.given_bytes(), 1});
}

/// Beside a copy of the rows as they are before.
void quantise(benchmark::State& state, wire w) {
  row_copy(state, w);
}

void receive(benchmark::State& state, layout l) {
  lone_shape s = shape_of(state);
  s.layout = l;
  lone_step step(s);
  // In place nothing is moved: what is left is the counting. Held against one row's copy each.
  std::size_t const times = l == layout::in_place ? 1 : static_cast<std::size_t>(s.topk);
  beside_a_copy(state, step, 1, false,
                {static_cast<std::size_t>(s.tokens), step.sent_bytes(), times});
}

void give_back(benchmark::State& state, bool sums) {
  lone_step step(shape_of(state));
  std::size_t const rows = static_cast<std::size_t>(step.shape().tokens) *
                           (sums ? 1 : static_cast<std::size_t>(step.shape().topk));
  beside_a_copy(state, step, 2, sums, {rows, step.home_bytes(), 1});
}

void gather(benchmark::State& state, reduction r) {
  lone_shape s = shape_of(state);
  s.reduction = r;
  lone_step step(s);
  std::size_t const rows = static_cast<std::size_t>(s.tokens) *
                           (r == reduction::per_rank ? 1 : static_cast<std::size_t>(s.topk));
  beside_a_copy(state, step, 3, false, {rows, step.home_bytes(), 1});
}

BENCHMARK_CAPTURE(row_copy, bf16, wire::bf16)->Arg(8)->Arg(128)->Arg(1024)->UseManualTime();
BENCHMARK_CAPTURE(row_copy, opaque, wire::opaque)->Arg(128)->UseManualTime();
BENCHMARK_CAPTURE(quantise, fp8_e4m3, wire::fp8_e4m3)->Arg(8)->Arg(128)->UseManualTime();
BENCHMARK_CAPTURE(quantise, fp8_e4m3fnuz, wire::fp8_e4m3fnuz)->Arg(128)->UseManualTime();
BENCHMARK_CAPTURE(quantise, fp8_ue8m0, wire::fp8_ue8m0)->Arg(128)->UseManualTime();
BENCHMARK_CAPTURE(receive, in_place, layout::in_place)->Arg(8)->Arg(128)->UseManualTime();
BENCHMARK_CAPTURE(receive, grouped, layout::grouped)->Arg(8)->Arg(128)->UseManualTime();
BENCHMARK_CAPTURE(give_back, experts, false)->Arg(8)->Arg(128)->UseManualTime();
BENCHMARK_CAPTURE(give_back, sums, true)->Arg(8)->Arg(128)->UseManualTime();
BENCHMARK_CAPTURE(gather, per_rank, reduction::per_rank)->Arg(8)->Arg(128)->UseManualTime();
BENCHMARK_CAPTURE(gather, per_choice, reduction::per_choice)->Arg(8)->Arg(128)->UseManualTime();

}  // namespace
