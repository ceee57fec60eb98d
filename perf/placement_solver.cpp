// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// placement_solver: how long does a placement take, and how near is it to what can be reached?
///
/// usage: placement_solver [--turns N] [--eplb DIR]
///
/// Places 58 layers of 256 experts with power-law loads on 8 ranks, on one core, and prints the
/// best of N turns for each policy. With --eplb, a directory of EPLB's golden files, it also prints
/// the seconds that their metadata gives for the Python original, per layer, beside what ferry
/// takes on the same loads.

#include <ferry/balance/load_files.hpp>
#include <ferry/files/safetensors.hpp>
#include <ferry/placement.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>
#include <optional>
#include <string>

namespace {

constexpr int num_layers = 58, num_experts = 256, num_ranks = 8;

/// Each layer falls like rank^-exponent, with an exponent of its own, in an order of its own.
ferry::expert_loads power_laws() {
  std::uint64_t state = 58;
  auto const next = [&] {
    std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  };
  ferry::expert_loads loads{num_layers, num_experts, {}};
  for (int l = 0; l < num_layers; ++l) {
    double const exponent = 0.3 + 0.8 * static_cast<double>(next() >> 11) * 0x1p-53;
    std::vector<double> layer;
    for (int e = 0; e < num_experts; ++e)
      layer.push_back(std::floor(1e6 * std::pow(e + 1.0, -exponent)));
    for (std::size_t i = layer.size() - 1; i > 0; --i) std::swap(layer[i], layer[next() % (i + 1)]);
    loads.values.insert(loads.values.end(), layer.begin(), layer.end());
  }
  return loads;
}

struct timed {
  ferry::placement where;
  double seconds;  ///< the fewest of all turns
};

timed best_of(int turns, ferry::placement_policy policy, ferry::expert_loads const& loads,
              ferry::placement_options const& options) {
  std::optional<timed> best;
  for (int i = 0; i < turns; ++i) {
    auto const start = std::chrono::steady_clock::now();
    auto where = ferry::place(policy, {.windows = {&loads, 1}}, options).value();
    double const took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!best || took < best->seconds) best = timed{std::move(where), took};
  }
  return std::move(*best);
}

/// The largest excess of a busiest rank over the bound, over layers.
double above_bound(ferry::placement const& where, ferry::expert_loads const& loads) {
  auto const b = ferry::balance_of(where, loads).value();
  double most = 0;
  for (int l = 0; l < loads.num_layers; ++l) {
    auto const mine = loads.layer(l);
    double const mean = std::accumulate(mine.begin(), mine.end(), 0.0) / where.num_ranks;
    double const bound = ferry::busiest_rank_bound(mine, where.num_ranks);
    most = std::max(most, b.max_over_mean[static_cast<std::size_t>(l)] * mean / bound - 1);
  }
  return most;
}

void report(char const* question, ferry::placement_policy policy, timed const& t,
            ferry::expert_loads const& loads, std::optional<double> python_seconds) {
  auto const b = ferry::balance_of(t.where, loads).value();
  fmt::print(
      "{{\"question\":\"{}\",\"policy\":\"{}\",\"layers\":{},\"experts\":{},\"slots\":{},\"ranks\":"
      "{},"
      "\"seconds\":{:.6f},\"seconds_per_layer\":{:.9f},\"max_over_mean_worst\":{:.6f}",
      question, ferry::to_string(policy), loads.num_layers, loads.num_experts, t.where.num_slots,
      t.where.num_ranks, t.seconds, t.seconds / loads.num_layers, b.worst);
  if (t.where.num_slots == loads.num_experts)
    fmt::print(",\"above_bound\":{:.8f}", above_bound(t.where, loads));
  if (python_seconds)
    fmt::print(",\"eplb_python_seconds_per_layer\":{:.9f}", *python_seconds / loads.num_layers);
  fmt::print("}}\n");
}

/// "seconds_per_call" within the facts of a golden case.
std::optional<double> seconds_in(std::string const& facts) {
  std::string const key = "\"seconds_per_call\":";
  auto const at = facts.find(key);
  if (at == std::string::npos) return {};
  return std::strtod(facts.c_str() + at + key.size(), nullptr);
}

void beside_eplb(std::string const& directory, int turns) {
  for (char const* file : {"zipf0", "zipf1"}) {
    auto const path = directory + "/" + file + ".safetensors";
    auto const loads = ferry::read_loads(path).value().front();
    auto const golden = ferry::safetensors::open(path).value();
    for (auto const& [name, facts] : golden.metadata()) {
      int slots = 0;
      ferry::placement_options options{.num_ranks = num_ranks};
      if (std::sscanf(name.c_str(), "r%d_g%d_n%d", &slots, &options.num_groups,
                      &options.num_nodes) != 3)
        continue;
      options.redundant = slots - loads.num_experts;
      auto const python = seconds_in(facts);
      auto const question = std::string(file) + " " + name;
      using enum ferry::placement_policy;
      for (auto policy : {eplb, options.redundant ? replicate : permute})
        report(question.c_str(), policy, best_of(turns, policy, loads, options), loads, python);
    }
  }
}

int run(int argc, char** argv) {
  int turns = 5;
  std::optional<std::string> eplb_directory;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--turns") == 0)
      turns = std::atoi(argv[i + 1]);
    else if (std::strcmp(argv[i], "--eplb") == 0)
      eplb_directory = argv[i + 1];
    else
      turns = 0;
  }
  if (argc % 2 == 0 || turns < 1) {
    std::fprintf(stderr, "usage: placement_solver [--turns N] [--eplb DIR]\n");
    return 1;
  }
  auto const loads = power_laws();
  using enum ferry::placement_policy;
  for (auto policy : {eplb, permute})
    report("power laws", policy, best_of(turns, policy, loads, {.num_ranks = num_ranks}), loads,
           {});
  report("power laws", replicate,
         best_of(turns, replicate, loads, {.num_ranks = num_ranks, .redundant = 32}), loads, {});
  if (eplb_directory) beside_eplb(*eplb_directory, turns);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "placement_solver: %s\n", e.what());
    return 1;
  }
}
