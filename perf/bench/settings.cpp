// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "settings.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <ferry/version.hpp>

#include <charconv>
#include <cmath>
#include <iostream>

namespace ferry::bench {
namespace {

std::vector<std::string> split(std::string const& text) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// Lists are written with commas: "1,8,32".
void add_list(CLI::App& app, std::string const& name, std::vector<int>& values, int low, int high,
              std::string const& about) {
  auto take = [&values, name, low, high](std::string const& text) {
    values.clear();
    for (std::string const& part : split(text)) {
      int value = 0;
      auto const* end = part.data() + part.size();
      auto const [stop, trouble] = std::from_chars(part.data(), end, value);
      if (trouble != std::errc() || stop != end || value < low || value > high)
        throw CLI::ValidationError(name, fmt::format("\"{}\" is not in {}..{}", part, low, high));
      values.push_back(value);
    }
  };
  app.add_option_function<std::string>(name, take, about)->type_name("N,...");
}

template <class T>
CLI::Option* add_words(CLI::App& app, std::string const& name, std::vector<T>& values,
                       words<T> const& known, std::string const& about) {
  std::string all;
  for (auto const& [word, meaning] : known) all += (all.empty() ? "" : "|") + word;
  auto take = [&values, &known, name, all](std::string const& text) {
    values.clear();
    for (std::string const& part : split(text)) {
      std::size_t const before = values.size();
      for (auto const& [word, meaning] : known)
        if (word == part) values.push_back(meaning);
      if (values.size() == before)
        throw CLI::ValidationError(name, fmt::format("\"{}\" is none of {}", part, all));
    }
  };
  return app.add_option_function<std::string>(name, take, about)->type_name(all + ",...");
}

void add_cases(CLI::App& app, settings& s) {
  add_words(app, "--op", s.ops, operation_words, "what is measured [all three]");
  add_list(app, "--tokens", s.tokens, 0, 1 << 20, "tokens of each rank [1,8,32,128]");
  add_list(app, "--hidden", s.hidden, 1, 1 << 20, "columns of a row [7168]");
  add_list(app, "--topk", s.topk, 1, 32, "choices of a token [8, or what the file has]");
  add_list(app, "--experts", s.experts, 1, 1 << 20, "experts of the whole group [256]");
  add_words(app, "--wire", s.wires, wire_words, "rows in flight to the experts [bf16]");
  add_words(app, "--layout", s.layouts, layout_words, "of the received rows [grouped]");
  add_words(app, "--reduction", s.reductions, reduction_words, "what comes home [per_rank]");
  add_words(app, "--rows", s.results, result_words,
            "what the experts hand to combine: a row for each choice, or one for each token that "
            "they have summed already [experts]");
  add_list(app, "--slots", s.slots, 1, 64, "steps that are open at the same time [--queues]");
  add_list(app, "--queues", s.queues, 1, 64, "threads of each rank, which share its slots [1]");
}

void add_routing(CLI::App& app, settings& s) {
  auto* routing =
      add_words(app, "--routing", s.routings, routing_words, "how experts are chosen [uniform]");
  auto* file =
      app.add_option("--choices", s.choices_file,
                     "take the choices from a .npy or .safetensors file: integers [tokens, "
                     "layers, topk]; rank r of T tokens takes rows r*T and on")
          ->type_name("FILE");
  add_list(app, "--layers", s.layers, 0, 1 << 20, "layers of that file [0]");
  file->excludes(routing);
  app.add_option("--seed", s.seed, "of the routing")->capture_default_str();
}

void add_run(CLI::App& app, settings& s) {
  app.add_option("--ranks", s.ranks,
                 "ranks that are threads of this process [2]; without it, under mpirun, its ranks")
      ->check(CLI::Range(1, 65536));
  app.add_option("--seconds", s.seconds, "to measure each program of a case for, at most")
      ->check([](std::string const& text) {
        double const value = std::strtod(text.c_str(), nullptr);
        return value > 0 && value <= 3600 ? "" : "\"" + text + "\" is not above 0 and up to 3600";
      })
      ->capture_default_str();
  app.add_option("--json", s.json_file, "write one JSON object a case, one a line")
      ->type_name("FILE");
  app.add_flag("--sizes", s.sizes,
               "print the bytes of each case's window, beside those of DeepEP's low-latency "
               "buffer, and end");
  app.add_option("--ranks-per-node", s.ranks_per_node,
                 "ranks of this machine play nodes of so many, which exchange over a network; with "
                 "--sizes: windows as for two hops between such nodes")
      ->check(CLI::Range(1, 65536));
  app.add_option("--carrier", s.carrier, "between nodes: verbs or libfabric [verbs]")
      ->type_name("NAME")
      ->transform(CLI::CheckedTransformer(std::map<std::string, carrier>{
          {"verbs", carrier::verbs}, {"libfabric", carrier::libfabric}}));
  app.add_option("--hops", s.hops, "between nodes: automatic, one or two [automatic]")
      ->type_name("NAME")
      ->transform(CLI::CheckedTransformer(std::map<std::string, hops>{
          {"automatic", hops::automatic}, {"one", hops::one}, {"two", hops::two}}));
  app.set_version_flag("--version", "ferry-bench " FERRY_VERSION);
}

}  // namespace

std::variant<settings, int> parse(int argc, char** argv) {
  CLI::App app(
      "Measures ferry's dispatch and combine beside memcpy and beside MPI, in one run, on the same "
      "routing.\nStart it under mpirun, or alone: then its ranks are threads, and there is no MPI "
      "to compare with.\nValues with \",...\" may be lists: each combination is a case.",
      "ferry-bench");
  settings s;
  add_cases(app, s);
  add_routing(app, s);
  add_run(app, s);
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& e) {
    return app.exit(e) == 0 ? succeeded : misused;
  }
  s.topk_given = app.count("--topk") > 0;
  s.slots_given = app.count("--slots") > 0;
  if (app.count("--layers") && !s.choices_file) {
    std::cerr << "ferry-bench: --layers says which layers of a file are taken: give --choices\n";
    return misused;
  }
  for (char const* const of_nodes : {"--carrier", "--hops"})
    if (app.count(of_nodes) && (s.sizes || !s.ranks_per_node)) {
      std::cerr << "ferry-bench: " << of_nodes
                << " says how nodes exchange: give --ranks-per-node, without --sizes\n";
      return misused;
    }
  if (s.choices_file) s.routings = {routing_kind::file};
  return s;
}

exchange_options options_of(bench_case const& c, std::int64_t capacity) {
  exchange_options o{.num_experts = c.experts, .topk = c.topk, .hidden = c.hidden};
  // A window for no tokens would be no window.
  o.max_tokens = std::max(1, c.tokens);
  o.tokens = o.expert_rows = o.output = token_type(c);
  o.wire = c.sent;
  o.combine_wire = wire_home(c);
  o.layout = c.layout;
  o.reduction = c.reduction;
  if (c.layout == layout::padded) o.capacity = capacity;
  if (c.sent == wire::opaque) {
    row_sizes const size = sizes_of(c);
    o.opaque_row_bytes = size.sent;
    o.opaque_scale_bytes = size.scales;
  }
  o.num_microbatches = c.slots;
  return o;
}

namespace {

result<void> check(bench_case const& c) {
  if (c.queues > c.slots)
    return error{error_code::invalid_argument,
                 fmt::format("--queues {} with --slots {}: each queue drives slots of its own",
                             c.queues, c.slots)};
  if (c.results == result_rows::summed && c.reduction != reduction::per_rank)
    return error{error_code::invalid_argument,
                 "--rows summed with --reduction per_choice: summed rows have no choices"};
  if (auto const valid = validate(options_of(c, 1), c.ranks); !valid)
    return error{valid.error().code, describe(c) + ": " + valid.error().message};
  return {};
}

/// Appends to each case one for each of `values`.
template <class T, class Set>
void sweep(std::vector<bench_case>& cases, std::vector<T> const& values, Set const& set) {
  std::vector<bench_case> more;
  for (bench_case const& c : cases)
    for (T const& value : values) {
      more.push_back(c);
      set(more.back(), value);
    }
  cases = std::move(more);
}

}  // namespace

result<std::vector<bench_case>> cases_of(settings const& s, int ranks) {
  bench_case first;
  first.ranks = ranks;
  std::vector<bench_case> all = {first};
  sweep(all, s.ops, [](bench_case& c, operation v) { c.op = v; });
  sweep(all, s.tokens, [](bench_case& c, int v) { c.tokens = v; });
  sweep(all, s.hidden, [](bench_case& c, int v) { c.hidden = v; });
  sweep(all, s.topk, [](bench_case& c, int v) { c.topk = v; });
  sweep(all, s.experts, [](bench_case& c, int v) { c.experts = v; });
  sweep(all, s.wires, [](bench_case& c, wire v) { c.sent = v; });
  sweep(all, s.layouts, [](bench_case& c, layout v) { c.layout = v; });
  sweep(all, s.reductions, [](bench_case& c, reduction v) { c.reduction = v; });
  sweep(all, s.results, [](bench_case& c, result_rows v) { c.results = v; });
  sweep(all, s.queues, [](bench_case& c, int v) { c.queues = c.slots = v; });
  if (s.slots_given) sweep(all, s.slots, [](bench_case& c, int v) { c.slots = v; });
  sweep(all, s.routings, [](bench_case& c, routing_kind v) { c.routing = v; });
  sweep(all, s.layers, [](bench_case& c, int v) { c.layer = v; });
  for (bench_case const& c : all) FERRY_CHECK(check(c));
  return all;
}

std::string describe(bench_case const& c) {
  return fmt::format(
      "op={} tokens={} hidden={} topk={} experts={} wire={} layout={} reduction={} rows={} "
      "slots={} queues={} routing={}",
      word_of(operation_words, c.op), c.tokens, c.hidden, c.topk, c.experts, to_string(c.sent),
      word_of(layout_words, c.layout), word_of(reduction_words, c.reduction),
      word_of(result_words, c.results), c.slots, c.queues, word_of(routing_words, c.routing));
}

}  // namespace ferry::bench
