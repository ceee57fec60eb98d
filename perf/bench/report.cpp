// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "report.hpp"

#include <fmt/format.h>
#include <ferry/exec/cpu/code_level.hpp>
#include <nlohmann/json.hpp>

#include <cmath>

namespace ferry::bench {
namespace {

using json = nlohmann::ordered_json;

// Enough digits for anything that is measured here.
double rounded(double x) {
  return std::round(x * 1000) / 1000;
}

json number(std::optional<double> x) {
  return x ? json(rounded(*x)) : json(nullptr);
}

std::string shown(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.2f}", *ratio) : "-";
}

void add_case(json& line, bench_case const& c) {
  line["op"] = word_of(operation_words, c.op);
  line["ranks"] = c.ranks;
  line["tokens"] = c.tokens;
  line["hidden"] = c.hidden;
  line["topk"] = c.topk;
  line["experts"] = c.experts;
  line["wire"] = to_string(c.sent);
  line["layout"] = word_of(layout_words, c.layout);
  line["reduction"] = word_of(reduction_words, c.reduction);
  line["rows"] = word_of(result_words, c.results);
  line["slots"] = c.slots;
  line["queues"] = c.queues;
  line["routing"] = word_of(routing_words, c.routing);
}

}  // namespace

times const* outcome::find(std::string const& name) const {
  for (times const& t : programs)
    if (t.name == name) return &t;
  return nullptr;
}

std::optional<double> outcome::ratio(std::string const& name) const {
  times const* const other = find(name);
  double const own = programs.at(0).slowest_p50();
  if (!other || own <= 0) return std::nullopt;
  return other->slowest_p50() / own;
}

std::string to_json(outcome const& o) {
  times const& ferry = o.programs.at(0);
  auto const slowest = static_cast<std::size_t>(ferry.slowest);
  json line;
  add_case(line, o.of);
  if (!o.choices_file.empty()) {
    line["choices"] = o.choices_file;
    line["layer"] = o.of.layer;
  }
  line["bytes"] = o.carried.others;
  line["self_bytes"] = o.carried.self;
  line["limit_bytes"] = o.limit_bytes;
  line["p50_us"] = rounded(ferry.p50[slowest]);
  line["p90_us"] = rounded(ferry.p90[slowest]);
  line["p99_us"] = rounded(ferry.p99[slowest]);
  line["ratio_limit"] = number(o.ratio("limit"));
  line["ratio_mpi"] = number(o.ratio("mpi"));
  line["ratio_mpi_naive"] = number(o.ratio("mpi-naive"));
  line["slowest_rank"] = ferry.slowest;
  json ranks = json::array();
  for (std::size_t r = 0; r < ferry.p50.size(); ++r)
    ranks.push_back({{"p50_us", rounded(ferry.p50[r])},
                     {"p90_us", rounded(ferry.p90[r])},
                     {"p99_us", rounded(ferry.p99[r])}});
  line["by_rank"] = ranks;
  json parts = json::object();
  for (auto const& [name, p50] : ferry.parts) parts[name + "_p50_us"] = rounded(p50);
  line["halves"] = parts;
  for (auto const& [name, key] : {std::pair{"limit", "limit_p50_us"},
                                  {"mpi", "mpi_p50_us"},
                                  {"mpi-naive", "mpi_naive_p50_us"}}) {
    times const* const other = o.find(name);
    line[key] = number(other ? std::optional(other->slowest_p50()) : std::nullopt);
  }
  if (o.ranks_per_node) {
    line["ranks_per_node"] = o.ranks_per_node;
    line["carrier"] = o.carrier == carrier::verbs ? "verbs" : "libfabric";
    line["hops"] = o.hops == hops::two ? "two" : "one";
  }
  line["iterations"] = ferry.iterations;
  line["in_a_row"] = ferry.in_a_row;
  line["started_by"] = o.started;
  line["cores"] = usable_cores();
  auto const level = chosen_code_level();
  line["code_level"] = level ? fmt::format("v{}", static_cast<int>(*level)) : "";
  return line.dump();
}

std::string table_head() {
  return fmt::format(
      "{:8} {:>6} {:>6} {:>4} {:>5}  {:12} {:8} {:10} {:13} {:>5}  {:>10} {:>10} "
      "{:>10}  {:>6} {:>6} {:>6}",
      "op", "tokens", "hidden", "topk", "exp", "wire", "layout", "reduction", "routing", "sl/q",
      "p50 us", "p90 us", "p99 us", "limit", "mpi", "naive");
}

std::string table_row(outcome const& o) {
  bench_case const& c = o.of;
  times const& ferry = o.programs.at(0);
  auto const slowest = static_cast<std::size_t>(ferry.slowest);
  return fmt::format(
      "{:8} {:>6} {:>6} {:>4} {:>5}  {:12} {:8} {:10} {:13} {:>5}  {:>10.1f} {:>10.1f} {:>10.1f}  "
      "{:>6} {:>6} {:>6}",
      word_of(operation_words, c.op), c.tokens, c.hidden, c.topk, c.experts, to_string(c.sent),
      word_of(layout_words, c.layout),
      c.results == result_rows::summed ? "summed" : word_of(reduction_words, c.reduction),
      word_of(routing_words, c.routing), fmt::format("{}/{}", c.slots, c.queues),
      ferry.p50[slowest], ferry.p90[slowest], ferry.p99[slowest], shown(o.ratio("limit")),
      shown(o.ratio("mpi")), shown(o.ratio("mpi-naive")));
}

result<json_lines> json_lines::open(std::optional<std::string> const& path) {
  json_lines made;
  if (!path) return made;
  made.path_ = *path;
  made.out_.open(*path, std::ios::trunc);
  if (!made.out_) return error{error_code::io, *path + ": cannot be written"};
  return made;
}

result<void> json_lines::write(std::string const& line) {
  if (path_.empty()) return {};
  out_ << line << '\n' << std::flush;
  if (!out_) return error{error_code::io, path_ + ": cannot be written"};
  return {};
}

}  // namespace ferry::bench
