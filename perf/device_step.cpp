// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// How long a step of the exchange takes on one device that several ranks share as threads, as calls
// and as a replayed graph. Prints one JSON line, and with --table a row as well.

#include <ferry/ferry.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace ferry;
using clock = std::chrono::steady_clock;

struct settings {
  std::string device = "cuda";
  int ranks = 8, tokens = 128, hidden = 7168, experts = 64, topk = 8, blocks = 0;
  int warm_up = 5, steps = 50;
  bool fp8 = false, table = false;
};

struct measured {
  double calls_us = 0, graph_us = 0;
  double megabytes = 0;  ///< to and from other ranks, per rank and step
};

exchange_options options_of(settings const& s) {
  exchange_options o{.num_experts = s.experts, .topk = s.topk, .hidden = s.hidden};
  o.max_tokens = s.tokens;
  o.wire = s.fp8 ? wire::fp8_e4m3 : wire::bf16;
  o.blocks = s.blocks ? s.blocks : std::max(1, 64 / s.ranks);
  o.num_microbatches = 1;
  // A token names each expert once, so no expert gets more rows than there are tokens.
  o.capacity = std::int64_t{s.ranks} * s.tokens * std::min(s.topk, s.experts / s.ranks);
  return o;
}

// All that a rank needs for its steps; the experts are the identity, on a buffer of their own.
struct rank_on_device {
  exchange ep;
  queue q;
  device_memory tokens, ids, made, output;
  settings const& s;

  static result<rank_on_device> make(group const& ranks, device const& where, settings const& s) {
    exchange_options const o = options_of(s);
    auto const size = [](auto n) { return static_cast<std::size_t>(n); };
    std::size_t const rows = size(s.tokens) * size(s.hidden) * 2;
    FERRY_TRY(device_memory tokens, where.allocate(memory_kind::local, rows));
    FERRY_TRY(device_memory ids, where.allocate(memory_kind::local, size(s.tokens * s.topk) * 4));
    FERRY_TRY(device_memory made,
              where.allocate(memory_kind::local, size(o.capacity) * size(s.hidden) * 2));
    FERRY_TRY(device_memory output, where.allocate(memory_kind::local, rows));
    FERRY_TRY(queue q, queue::on(where));
    std::vector<std::int32_t> choices;
    for (int t = 0; t < s.tokens; ++t)
      for (int k = 0; k < s.topk; ++k)
        choices.push_back((t * 7 + ranks.rank() * 3 + k * (s.experts / s.topk)) % s.experts);
    FERRY_CHECK(q.copy(ids.data(), choices.data(), choices.size() * 4));
    FERRY_CHECK(q.wait(std::chrono::seconds(30)));
    FERRY_TRY(exchange ep, make_exchange(ranks, where, o));
    return rank_on_device{std::move(ep),
                          std::move(q),
                          std::move(tokens),
                          std::move(ids),
                          std::move(made),
                          std::move(output),
                          s};
  }

  result<void> step() {
    microbatch& mb = ep.microbatch(0);
    const_tensor const x{tokens.data(), s.tokens, s.hidden, dtype::bf16, s.hidden * 2};
    FERRY_TRY(received const in,
              mb.dispatch(q, {.tokens = x,
                              .choices = dense(reinterpret_cast<std::int32_t*>(ids.data()),
                                               s.tokens, s.topk)}));
    return mb.combine(q,
                      const_tensor{made.data(), in.capacity, s.hidden, dtype::bf16, s.hidden * 2},
                      tensor{output.data(), s.tokens, s.hidden, dtype::bf16, s.hidden * 2});
  }
};

// The time of one of `n` calls of `work`, between two barriers.
template <class Work>
result<double> time_of(group const& ranks, rank_on_device& r, int n, Work const& work) {
  FERRY_CHECK(ranks.barrier());
  auto const start = clock::now();
  for (int i = 0; i < n; ++i) FERRY_CHECK(work());
  FERRY_CHECK(r.ep.microbatch(0).wait(r.q));
  FERRY_CHECK(ranks.barrier());
  return std::chrono::duration<double, std::micro>(clock::now() - start).count() / n;
}

result<measured> measure(group const& ranks, device const& where, settings const& s) {
  FERRY_TRY(rank_on_device r, rank_on_device::make(ranks, where, s));
  measured m;
  FERRY_CHECK(time_of(ranks, r, s.warm_up, [&] { return r.step(); }));
  FERRY_TRY(m.calls_us, time_of(ranks, r, s.steps, [&] { return r.step(); }));
  FERRY_TRY(graph const replay, capture(r.q, [&] { return r.step(); }));
  FERRY_CHECK(time_of(ranks, r, s.warm_up, [&] { return replay.launch(r.q); }));
  FERRY_TRY(m.graph_us, time_of(ranks, r, s.steps, [&] { return replay.launch(r.q); }));
  exchange_counters const c = r.ep.counters();
  m.megabytes =
      static_cast<double>(c.dispatch_bytes + c.combine_bytes) / static_cast<double>(c.steps) / 1e6;
  FERRY_CHECK(ranks.barrier());
  return m;
}

int run(settings const& s) {
  result<device> const where = device::open(s.device);
  if (!where) {
    fmt::print(stderr, "device_step: {}: {}\n", to_string(where.error().code),
               where.error().message);
    return 1;
  }
  thread_ranks const meeting = threads(s.ranks);
  std::mutex guard;
  std::string failed;
  measured seen;
  std::vector<std::thread> all;
  for (int i = 0; i < s.ranks; ++i)
    all.emplace_back([&, i] {
      result<group> const joined = join(meeting.rank(i));
      result<measured> const m =
          joined ? measure(*joined, *where, s) : result<measured>(joined.error());
      std::lock_guard const lock(guard);
      if (!m)
        failed = fmt::format("rank {}: {}: {}", i, to_string(m.error().code), m.error().message);
      else if (i == 0)
        seen = *m;
    });
  for (std::thread& t : all) t.join();
  if (!failed.empty()) {
    fmt::print(stderr, "device_step: {}\n", failed);
    return 1;
  }
  fmt::print(
      "{{\"device\": \"{}\", \"model\": \"{}\", \"ranks\": {}, \"tokens\": {}, \"hidden\": {}, "
      "\"wire\": \"{}\", \"blocks\": {}, \"calls_us\": {:.1f}, \"graph_us\": {:.1f}, "
      "\"megabytes\": {:.3f}}}\n",
      where->name(), where->model(), s.ranks, s.tokens, s.hidden, s.fp8 ? "fp8" : "bf16",
      options_of(s).blocks, seen.calls_us, seen.graph_us, seen.megabytes);
  if (s.table)
    fmt::print("| {} | {} | {} | {} | {:.1f} | {:.1f} | {:.2f} |\n", s.ranks, s.tokens, s.hidden,
               s.fp8 ? "fp8" : "bf16", seen.calls_us, seen.graph_us, seen.megabytes);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("Times steps of the exchange on one device that several ranks share as threads.");
  app.add_option("--device", s.device, "as ferry-decode takes it")->capture_default_str();
  app.add_option("--ranks", s.ranks)->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--tokens", s.tokens)->check(CLI::Range(1, 1 << 16))->capture_default_str();
  app.add_option("--hidden", s.hidden)->check(CLI::Range(1, 1 << 16))->capture_default_str();
  app.add_option("--experts", s.experts)->check(CLI::Range(1, 1 << 12))->capture_default_str();
  app.add_option("--topk", s.topk)->check(CLI::Range(1, 32))->capture_default_str();
  app.add_option("--blocks", s.blocks, "of each call; 0: 64 shared out over the ranks")
      ->capture_default_str();
  app.add_option("--steps", s.steps)->check(CLI::Range(1, 1 << 20))->capture_default_str();
  app.add_flag("--fp8", s.fp8, "rows to the experts in fp8 instead of bf16");
  app.add_flag("--table", s.table, "a row of a table too");
  CLI11_PARSE(app, argc, argv);
  if (s.topk > s.experts || s.experts % s.ranks != 0) {
    fmt::print(stderr, "device_step: {} experts for top-{} on {} ranks\n", s.experts, s.topk,
               s.ranks);
    return 2;
  }
  return run(s);
}
