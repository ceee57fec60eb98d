// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Where a decode step goes: the demo model decodes on ranks that are threads, and each rank says
// how much of its steps was model compute and how much was the exchange. The exchange's part holds
// its copies and the waiting for other ranks.

#include <ferry/deepseek/model.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>
#include <vector>

namespace {

using namespace ferry;
using namespace ferry::deepseek;

struct settings {
  std::string model;
  int ranks = 2;
  int sequences = 64;  ///< of each rank
  int steps = 32;
  bool bf16 = false;
};

struct shares {
  double step = 0;  ///< seconds of all measured steps
  double compute = 0;
  double dispatch = 0;
  double combine = 0;
};

double compute_of(model_times const& t) {
  return t.embedding + t.attention + t.dense + t.head + t.moe.gate + t.moe.shared + t.moe.experts;
}

result<shares> decode(settings const& s, group const& ranks) {
  FERRY_TRY(auto const config, load_model_config(s.model));
  FERRY_TRY(auto const weights, checkpoint::open(s.model));
  model_options o;
  o.compute = s.bf16 ? dtype::bf16 : dtype::f32;
  o.wire = o.combine_wire = s.bf16 ? wire::bf16 : wire::f32;
  o.max_tokens = o.max_sequences = s.sequences;
  o.max_positions = s.steps + 1;
  FERRY_TRY(model m, model::load(weights, config, ranks, o));
  queue q;
  auto const rows = static_cast<std::size_t>(s.sequences);
  auto const vocabulary = static_cast<std::size_t>(config.vocab_size);
  std::vector<std::int32_t> ids(rows), slots(rows), positions(rows);
  std::vector<float> logits(rows * vocabulary);
  for (std::size_t i = 0; i < rows; ++i) {
    slots[i] = static_cast<std::int32_t>(i);
    ids[i] = static_cast<std::int32_t>((i * 17 + static_cast<std::size_t>(ranks.rank()) * 5) %
                                       vocabulary);
  }
  model_times before;
  auto start = std::chrono::steady_clock::now();
  for (int step = 0; step <= s.steps; ++step) {
    if (step == 1) {  // the first step makes what the others use again
      before = m.times();
      FERRY_CHECK(ranks.barrier());
      start = std::chrono::steady_clock::now();
    }
    positions.assign(rows, step);
    FERRY_CHECK(m.forward(q, {ids, slots, positions},
                          dense(logits.data(), s.sequences, config.vocab_size)));
    for (std::size_t i = 0; i < rows; ++i) {
      auto const row = logits.begin() + static_cast<std::ptrdiff_t>(i * vocabulary);
      auto const best = std::max_element(row, row + config.vocab_size);
      ids[i] = static_cast<std::int32_t>(best - row);
    }
  }
  shares found;
  found.step = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  found.compute = compute_of(m.times()) - compute_of(before);
  found.dispatch = m.times().moe.dispatch - before.moe.dispatch;
  found.combine = m.times().moe.combine - before.moe.combine;
  FERRY_CHECK(ranks.barrier());
  return found;
}

int report(settings const& s, std::vector<result<shares>> const& all) {
  for (auto const& one : all)
    if (!one) {
      fmt::print(stderr, "ferry_decode_breakdown: {}\n", one.error().message);
      return 1;
    }
  for (std::size_t r = 0; r < all.size(); ++r) {
    shares const& x = *all[r];
    double const rest = x.step - x.compute - x.dispatch - x.combine;
    fmt::print(
        "{{\"question\": \"decode_breakdown\", \"rank\": {}, \"ranks\": {}, \"sequences\": {}, "
        "\"step_us\": {:.1f}, \"compute\": {:.4f}, \"dispatch\": {:.4f}, \"combine\": {:.4f}, "
        "\"sampling\": {:.4f}, \"outside_compute\": {:.4f}}}\n",
        r, s.ranks, s.sequences, 1e6 * x.step / s.steps, x.compute / x.step, x.dispatch / x.step,
        x.combine / x.step, rest / x.step, (x.dispatch + x.combine) / x.step);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

int run(settings const& s) {
  thread_ranks const meeting(s.ranks);
  std::vector<result<shares>> all(static_cast<std::size_t>(s.ranks), error{});
  auto const rank = [&](int r) -> result<shares> {
    FERRY_TRY(group const ranks, join(meeting.rank(r)));
    return decode(s, ranks);
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < s.ranks; ++r)
    threads.emplace_back([&, r] { all[static_cast<std::size_t>(r)] = rank(r); });
  for (std::thread& t : threads) t.join();
  return report(s, all);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Shows how much of a decode step is model compute, dispatch and combine.");
  settings s;
  app.add_option("--model", s.model, "directory of a DeepSeek model")->required();
  app.add_option("--ranks", s.ranks)->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--sequences", s.sequences, "of each rank")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--steps", s.steps)->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_flag("--bf16", s.bf16, "compute and send in bf16 instead of f32");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(s);
  } catch (std::exception const& e) {
    fmt::print(stderr, "ferry_decode_breakdown: {}\n", e.what());
    return 1;
  }
}
