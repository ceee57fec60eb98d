// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "options.hpp"

#include <CLI/CLI.hpp>
#include <ferry/version.hpp>

#include <string>
#include <utility>

namespace ferry::place_tool {
namespace {

template <class T>
using names = std::vector<std::pair<std::string, T>>;

names<wire> const wires = {{"f32", wire::f32},
                           {"bf16", wire::bf16},
                           {"fp16", wire::fp16},
                           {"fp8_e4m3", wire::fp8_e4m3},
                           {"fp8_e4m3fnuz", wire::fp8_e4m3fnuz},
                           {"fp8_ue8m0", wire::fp8_ue8m0}};
names<replica_choice> const rules = {{"hash", replica_choice::hash},
                                     {"round_robin", replica_choice::round_robin},
                                     {"nearest", replica_choice::nearest}};

template <class T>
std::string words_of(names<T> const& choices) {
  std::string all;
  for (auto const& [word, meaning] : choices) all += (all.empty() ? "" : "|") + word;
  return all;
}

template <class T>
void add_choice(CLI::App& app, std::string const& name, T& value, names<T> const& choices,
                std::string const& about) {
  auto take = [&value, &choices, name](std::string const& word) {
    for (auto const& [known, meaning] : choices)
      if (word == known) {
        value = meaning;
        return;
      }
    throw CLI::ValidationError(name, "\"" + word + "\" is none of " + words_of(choices));
  };
  app.add_option_function<std::string>(name, take, about)->type_name(words_of(choices));
}

template <class T>
CLI::Option* add_count(CLI::App& app, std::string const& name, T& value, int least,
                       std::string const& about) {
  return app.add_option(name, value, about)->check(CLI::Range(least, most_count))->type_name("N");
}

/// CLI::Range lets a NaN pass.
CLI::Option* add_real(CLI::App& app, std::string const& name, double& value, double least,
                      std::string const& about) {
  return app.add_option(name, value, about)
      ->check([least](std::string const& text) {
        char* end = nullptr;
        double const v = std::strtod(text.c_str(), &end);
        return end != text.c_str() && *end == '\0' && v >= least && v <= 1e9
                   ? std::string()
                   : "\"" + text + "\" is not in " + std::to_string(least) + "..1e9";
      })
      ->type_name("X")
      ->capture_default_str();
}

void add_files(CLI::App& app, options& o) {
  auto* input = app.add_option_group("input", "one of");
  input
      ->add_option(
          "--loads", o.loads_file,
          "loads: safetensors with weight [layers, experts], or JSON with logical_count, or as "
          "ferry-decode --save-loads writes them, with choices")
      ->type_name("FILE");
  input
      ->add_option("--choices", o.choices_file,
                   "choices: npy or safetensors, int16, int32 or int64 [tokens, layers, topk]")
      ->type_name("FILE");
  input->require_option(1);
  app.add_option("--from", o.present_file,
                 "the present placement, as --json writes it; without it experts lie contiguously")
      ->type_name("FILE");
  app.add_option("--json", o.json_file, "write one object a policy")->type_name("FILE");
  app.add_option("--svg", o.svg_file, "draw the load of each rank in each layer, before and after")
      ->type_name("FILE");
}

void add_placement(CLI::App& app, options& o, std::vector<std::string>& policies) {
  add_count(app, "--ranks", o.where.num_ranks, 1, "ranks")->required();
  add_count(app, "--redundant", o.where.redundant, 0, "replicas beyond one of each expert [0]");
  add_count(app, "--nodes", o.where.num_nodes, 1, "nodes that share the ranks [1]");
  add_count(app, "--groups", o.where.num_groups, 1,
            "routing groups, for eplb and hierarchical [1]");
  app.add_option("--policy", policies, "may be given more than once; without it all that apply")
      ->check([](std::string const& word) {
        return placement_policy_of(word) ? std::string() : "\"" + word + "\" is no policy";
      })
      ->allow_extra_args(false)
      ->type_name("contiguous|eplb|permute|local|replicate|hierarchical|incremental");
  add_count(app, "--everywhere", o.where.everywhere, 0,
            "replicate: this many of the hottest experts get a replica on every rank [0]");
  add_real(app, "--max-over-mean", o.where.most_over_mean, 1,
           "local, incremental: the busiest rank may have this many times the mean");
  add_real(app, "--min-gain", o.where.min_gain, 0,
           "incremental: stay unless the busiest ranks fall by this many times the mean, over all "
           "layers");
  app.add_option("--max-moved-bytes", o.where.most_moved_bytes, "incremental: most bytes to move")
      ->check(CLI::NonNegativeNumber)
      ->type_name("BYTES");
  app.add_option("--expert-bytes", o.where.expert_bytes,
                 "weights of one expert in one layer [44040192, DeepSeek-V3 in fp8]")
      ->check(CLI::PositiveNumber)
      ->type_name("BYTES");
  app.add_option("--rank-memory", o.where.rank_memory_bytes,
                 "most bytes that the experts of a rank may take")
      ->check(CLI::PositiveNumber)
      ->type_name("BYTES");
}

void add_measures(CLI::App& app, options& o) {
  add_count(app, "--experts", o.num_experts, 1, "experts of --choices [their highest id + 1]");
  add_count(app, "--topk", o.topk, 1, "choices per token behind --loads [8]");
  add_choice(app, "--replica-choice", o.rule, rules, "which replica serves a choice [hash]");
  add_count(app, "--hidden", o.traffic.hidden, 1, "columns of a row [7168]");
  add_choice(app, "--wire", o.traffic.wire, wires, "rows to the experts [fp8_e4m3]");
  add_choice(app, "--combine-wire", o.traffic.combine_wire, wires, "rows home [bf16]");
  app.add_option(
         "--tokens-per-step", o.tokens_per_step,
         "tokens of all ranks in a step, for the imbalance that chance alone makes [128 4096]")
      ->check(CLI::Range(1, 1 << 30))
      ->type_name("N");
}

}  // namespace

std::variant<options, int> parse(int argc, char** argv) {
  CLI::App app(
      "Finds on which ranks the experts of a Mixture-of-Experts model should live, and says how "
      "busy the\n"
      "ranks would be and how far tokens would travel.",
      "ferry-place");
  options o;
  // An expert of DeepSeek-V3: three matrices of 7168 x 2048, one byte an element.
  o.where.expert_bytes = std::size_t{3} * 7168 * 2048;
  std::vector<std::string> policies;
  add_files(app, o);
  add_placement(app, o, policies);
  add_measures(app, o);
  app.set_version_flag("--version", "ferry-place " FERRY_VERSION);
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    // As the other tools: 2 for a command line that is wrong.
    return app.exit(e) == 0 ? 0 : 2;
  }
  for (auto const& word : policies) o.policies.push_back(*placement_policy_of(word));
  return o;
}

}  // namespace ferry::place_tool
