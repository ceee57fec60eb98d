// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "options.hpp"

#include <CLI/CLI.hpp>
#include <ferry/version.hpp>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace ferry::decode {
namespace {

template <class T>
using names = std::vector<std::pair<std::string, T>>;

names<dtype> const computes = {{"f32", dtype::f32}, {"bf16", dtype::bf16}};
names<wire> const wires = {{"f32", wire::f32},
                           {"bf16", wire::bf16},
                           {"fp8_e4m3", wire::fp8_e4m3},
                           {"fp8_e4m3fnuz", wire::fp8_e4m3fnuz}};
names<reduction> const reductions = {{"per_rank", reduction::per_rank},
                                     {"per_choice", reduction::per_choice}};
names<deepseek::product_kernels> const product_kernels = {
    {"auto", deepseek::product_kernels::automatic},
    {"ferry", deepseek::product_kernels::portable},
    {"vendor", deepseek::product_kernels::vendor}};
names<layout> const layouts = {
    {"grouped", layout::grouped}, {"padded", layout::padded}, {"in_place", layout::in_place}};

names<overlap_driver> const drivers = {{"interleaved", overlap_driver::interleaved},
                                       {"handed_over", overlap_driver::handed_over},
                                       {"concurrent", overlap_driver::concurrent}};

/// Room for spans of a traced run, on each rank.
constexpr std::size_t traced_spans = 200'000;

/// An option whose value is one of a few words.
template <class T>
CLI::Option* add_choice(CLI::App& app, std::string const& name, T& value, names<T> const& choices,
                        std::string const& about) {
  std::string all;
  for (auto const& [word, meaning] : choices) all += (all.empty() ? "" : "|") + word;
  auto take = [&value, &choices, name, all](std::string const& word) {
    for (auto const& [known, meaning] : choices)
      if (word == known) {
        value = meaning;
        return;
      }
    throw CLI::ValidationError(name, "\"" + word + "\" is none of " + all);
  };
  return app.add_option_function<std::string>(name, take, about)->type_name(all);
}

/// An option that may stand more than once. CLI11's own lists would take "[a,b]" apart.
CLI::Option* add_repeated(CLI::App& app, std::string const& name, std::vector<std::string>& values,
                          std::string const& about) {
  return app.add_option(name, values, about)->allow_extra_args(false)->type_name("TEXT");
}

void add_input(CLI::App& app, options& o) {
  app.add_option("--model", o.model, "directory of a deepseek_v2 or deepseek_v3 model")
      ->required()
      ->type_name("DIR");
  add_repeated(app, "--prompt", o.prompts, "text to go on from; may be given more than once");
  app.add_option(
         "--prompts", o.prompts_file,
         "more prompts, one a line with JSON string escapes; an empty line is an empty prompt")
      ->type_name("FILE");
  add_repeated(app, "--token-ids", o.token_ids,
               "a prompt as ids, e.g. \"0 17 4\"; nothing is added to it");
}

void add_sampling(CLI::App& app, options& o) {
  app.add_option("--max-new-tokens", o.max_new_tokens, "tokens to add to each prompt")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_flag("--ignore-eos", o.ignore_eos, "go on after an end-of-sequence token");
  app.add_option("--temperature", o.temperature,
                 "sample at this temperature; 0 takes the best token, the lowest id among equals")
      ->check([](std::string const& text) {
        auto value = std::strtod(text.c_str(), nullptr);
        // A NaN is in no range, and CLI::Range lets it pass.
        return value >= 0 && value <= 1e6 ? "" : "\"" + text + "\" is not in 0..1000000";
      })
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of sampling; a prompt's text depends on it, not on the ranks")
      ->check([](std::string const& text) {
        // The conversion that follows would wrap a sign around.
        std::uint64_t value = 0;
        auto const* end = text.data() + text.size();
        auto [stop, trouble] = std::from_chars(text.data(), end, value);
        return trouble == std::errc() && stop == end
                   ? ""
                   : "\"" + text + "\" is not in 0..18446744073709551615";
      })
      ->capture_default_str();
}

void add_steps(CLI::App& app, options& o) {
  app.add_flag("--graph", o.steps.graph, "capture the decode step once and replay it");
  auto take = [&o](std::string const& word) {
    int value = 0;
    auto const* end = word.data() + word.size();
    auto [stop, trouble] = std::from_chars(word.data(), end, value);
    bool const is_number = trouble == std::errc() && stop == end && value >= 1 && value <= 32;
    if (!is_number && word != "auto")
      throw CLI::ValidationError("--microbatches", "\"" + word + "\" is neither auto nor in 1..32");
    o.steps.microbatches = is_number ? value : 0;
  };
  app.add_option_function<std::string>(
         "--microbatches", take,
         "split decode steps: one part communicates while another computes; auto: where the ranks "
         "agree that it pays [1]")
      ->type_name("N|auto");
  add_choice(
      app, "--overlap-driver", o.steps.driver, drivers,
      "who puts the parts on their queues: one thread, threads that hand over, or threads at "
      "once [interleaved]");
}

void add_balance(CLI::App& app, options& o) {
  static names<replica_choice> const rules = {{"hash", replica_choice::hash},
                                              {"round_robin", replica_choice::round_robin},
                                              {"nearest", replica_choice::nearest}};
  app.add_option("--placement", o.balance.placement_file,
                 "where the experts are, as ferry-place --json writes it; of a list the first "
                 "[contiguous]")
      ->type_name("FILE");
  add_choice(app, "--replicas", o.balance.replicas, rules,
             "which replica of an expert serves a token [hash]");
  auto take = [&o](std::string const& text) {
    if (auto const good = parse_rebalance(text, o.balance); !good)
      throw CLI::ValidationError("--rebalance", good.error().message);
  };
  app.add_option_function<std::string>(
         "--rebalance", take,
         "look at the measured loads every N steps, and move experts where the busiest ranks gain "
         "that many means of load; so many bytes of a rank after each step; by this policy [0, "
         "4194304, incremental]")
      ->type_name("every=N[,min-gain=X][,bytes-per-step=N][,policy=NAME]");
  app.add_option("--save-loads", o.balance.loads_file,
                 "write the experts' loads in the decode steps, and sampled choices, as JSON for "
                 "ferry-place --loads")
      ->type_name("FILE");
}

void add_device(CLI::App& app, options& o) {
  app.add_option("--device", o.device,
                 "what a rank computes on: cpu, hip, hip:i, cuda, cuda:i, emulated:32 or "
                 "emulated:64 [the best that is there]")
      ->check([](std::string const& text) {
        result<device> const there = device::open(text);
        bool const wrong = !there && there.error().code == error_code::invalid_argument;
        return wrong ? there.error().message : std::string();
      })
      ->type_name("NAME");
}

void add_output(CLI::App& app, options& o) {
  app.add_option(
         "--dump-logits", o.logits_file,
         "write the first prompt's logits: f32 rows, one a prompt position, then one a step")
      ->type_name("FILE");
  app.add_option("--json", o.json_file, "write numbers, tokens and texts as one JSON object")
      ->type_name("FILE");
  app.add_option("--trace", o.trace_file,
                 "write what ran when in prefill and decode, as JSON for Perfetto or Chrome")
      ->type_name("FILE");
  app.add_option("--timeline", o.timeline_file, "draw a typical decode step of all ranks as SVG")
      ->type_name("FILE");
  app.add_option("--show-tokens", o.show_tokens,
                 "print the ids of TEXT, without special tokens, and end")
      ->type_name("TEXT");
  app.set_version_flag("--version", "ferry-decode " FERRY_VERSION);
}

}  // namespace

std::variant<options, int> parse(int argc, char** argv) {
  CLI::App app(
      "Decodes text with a DeepSeek model whose experts are spread over the ranks of a group.\n"
      "Start it alone, under mpirun, or with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set.\n"
      "Prompt i is decoded by rank i modulo the number of ranks.",
      "ferry-decode");
  options o;
  add_input(app, o);
  add_sampling(app, o);
  add_device(app, o);
  add_choice(app, "--products", o.products, product_kernels,
             "who computes dense products on a GPU: its vendor's library where there is one, else "
             "ferry; ferry; the vendor's library [auto]");
  add_choice(app, "--dtype", o.compute, computes, "arithmetic of the model [f32]");
  auto* out = add_choice(app, "--wire", o.wire, wires, "rows to the experts [the dtype]");
  auto* home =
      add_choice(app, "--combine-wire", o.combine_wire, wires, "rows back home [the dtype]");
  add_choice(app, "--reduction", o.reduction, reductions,
             "what travels home: a sum of each rank, or every expert's row [per_rank]");
  add_choice(app, "--layout", o.layout, layouts, "of the rows before the experts [grouped]");
  std::int64_t timeout_ms = o.timeout.count();
  app.add_option("--timeout-ms", timeout_ms, "longest wait for another rank")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{86'400'000}))
      ->capture_default_str();
  app.add_option(
         "--ranks-per-node", o.ranks_per_node,
         "so many ranks count as a node; nodes reach each other by RDMA alone [a machine is "
         "a node]")
      ->check(CLI::Range(1, 65536))
      ->type_name("N");
  add_steps(app, o);
  add_balance(app, o);
  add_output(app, o);
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    return app.exit(e) == 0 ? succeeded : misused;
  }
  auto wire_of_dtype = o.compute == dtype::bf16 ? wire::bf16 : wire::f32;
  if (out->count() == 0) o.wire = wire_of_dtype;
  if (home->count() == 0) o.combine_wire = wire_of_dtype;
  o.timeout = std::chrono::milliseconds(timeout_ms);
  if (o.trace_file || o.timeline_file) o.steps.traced_spans = traced_spans;
  if (app.count("--rebalance") && o.ranks_per_node) {
    std::cerr
        << "ferry-decode: --rebalance with --ranks-per-node: experts move between ranks of one "
           "node only\n";
    return misused;
  }
  if (!o.show_tokens && !o.prompts_file && o.prompts.empty() && o.token_ids.empty()) {
    std::cerr << "ferry-decode: no prompt: give --prompt, --prompts or --token-ids\n";
    return misused;
  }
  return o;
}

}  // namespace ferry::decode
