// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// What waiting costs: waking a rank that sleeps, and a step that carries nothing.

#include <ferry/exchange.hpp>
#include <ferry/exec/cpu/waiter.hpp>

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace {

using namespace ferry;

/// One of two threads that wait for each other's word.
struct side {
  alignas(128) std::uint64_t word = 0;
  alignas(128) std::uint32_t asleep[2] = {};
  status_record status{};
};

/// A round trip between two threads. `sleeps`: each waiter goes to sleep at once, so that a round
/// trip holds two wake-ups; else it spins as long as it takes.
void round_trip(benchmark::State& state, bool sleeps) {
  side sides[2];
  waiter::settings how;
  how.spin_turns = sleeps ? 0 : 1 << 30;
  how.yield_turns = 0;
  std::atomic<bool> stop = false;
  auto const pass_on = [&](int me, waiter& waits, std::uint64_t epoch) {
    int const other = 1 - me;
    store_and_wake(&sides[other].word, epoch, &sides[other].asleep[me]);
    std::uint64_t seen = 0;
    return waits.wait({flag::done, other, -1, epoch}, &sides[me].word, seen);
  };
  std::thread echo([&] {
    waiter waits(how, sides[1].asleep, &sides[1].status, {});
    for (std::uint64_t epoch = 1; !stop; ++epoch) {
      std::uint64_t seen = 0;
      if (!waits.wait({flag::done, 0, -1, epoch}, &sides[1].word, seen)) return;
      store_and_wake(&sides[0].word, epoch, &sides[0].asleep[1]);
    }
  });
  waiter waits(how, sides[0].asleep, &sides[0].status, {});
  std::uint64_t epoch = 0;
  for (auto _ : state)
    if (!pass_on(0, waits, ++epoch)) state.SkipWithError("a wait failed");
  stop = true;
  store_and_wake(&sides[1].word, epoch + 1, &sides[1].asleep[0]);
  echo.join();
}

/// Steps without a token, of ranks that are threads: header, done and nothing else.
void zero_token_step(benchmark::State& state) {
  auto const size = static_cast<int>(state.range(0));
  thread_ranks const meeting(size);
  std::atomic<int> last = -1;  // a step that is the last, for all ranks
  auto const options = [] {
    exchange_options o{.num_experts = 64, .topk = 8, .hidden = 64};
    o.max_tokens = 16;
    o.num_microbatches = 1;
    return o;
  }();
  auto const one_step = [](exchange& ep, queue& q) {
    float nothing = 0;
    std::int32_t none = 0;
    microbatch& mb = ep.microbatch(0);
    auto const in =
        mb.dispatch(q, {.tokens = {reinterpret_cast<std::byte*>(&nothing), 0, 64, dtype::bf16, 0},
                        .choices = dense(&none, 0, 8)});
    return in && mb.combine(q, const_tensor{nullptr, 0, 64, dtype::bf16, 0},
                            tensor{nullptr, 0, 64, dtype::bf16, 0});
  };
  std::vector<std::thread> others;
  for (int r = 1; r < size; ++r)
    others.emplace_back([&, r] {
      group const ranks = join(meeting.rank(r)).value();
      exchange ep = make_exchange(ranks, options).value();
      queue q;
      for (int step = 0; last < 0 || step < last; ++step)
        if (!one_step(ep, q)) return;
      ranks.barrier().value();
    });
  {
    group const ranks = join(meeting.rank(0)).value();
    exchange ep = make_exchange(ranks, options).value();
    queue q;
    int steps = 0;
    for (auto _ : state) {
      if (!one_step(ep, q)) state.SkipWithError("a step failed");
      ++steps;
    }
    // The others are at most one step ahead: they wait in it for this rank.
    last = steps + 1;
    if (!one_step(ep, q)) state.SkipWithError("the last step failed");
    ranks.barrier().value();
  }
  for (std::thread& t : others) t.join();
}

BENCHMARK_CAPTURE(round_trip, spinning, false)->UseRealTime();
BENCHMARK_CAPTURE(round_trip, sleeping, true)->UseRealTime();
BENCHMARK(zero_token_step)->Arg(1)->Arg(2)->Arg(8)->UseRealTime();

}  // namespace
