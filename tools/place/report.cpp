// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "report.hpp"

#include <ferry/balance/load_files.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <optional>
#include <vector>

namespace ferry::place_tool {
namespace {

using json = nlohmann::ordered_json;

std::string number(std::optional<double> value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : std::string("-");
}

std::string bytes(double count) {
  constexpr char const* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (count >= 1000 && unit < 5) {
    count /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", count, unit == 0 || count >= 100 ? 0 : 1, units[unit]);
}

std::vector<std::string> line_of(outcome const& out) {
  std::vector<std::string> line = {
      out.valid ? out.name : out.name + " *",
      number(out.balance.mean, 4),
      number(out.balance.worst, 4),
      number(out.balance.time_weighted, 4),
      number(out.distance ? std::optional(out.distance->ranks_per_token) : std::nullopt, 2),
      number(out.distance ? std::optional(out.distance->nodes_per_token) : std::nullopt, 2),
      out.wire_bytes ? bytes(*out.wire_bytes) : "-",
  };
  for (auto const& measured : out.step_imbalance) line.push_back(number(measured, 3));
  line.push_back(bytes(static_cast<double>(out.moved_bytes)));
  line.push_back(out.name == "before" ? "-" : fmt::format("{:.3g}", out.seconds));
  return line;
}

/// Columns as wide as they need to be; the first from the left, numbers from the right.
std::string aligned(std::vector<std::vector<std::string>> const& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (auto const& line : lines)
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  std::string text;
  for (auto const& line : lines) {
    text += fmt::format("{:<{}}", line[0], widths[0]);
    for (std::size_t c = 1; c < line.size(); ++c)
      text += fmt::format("  {:>{}}", line[c], widths[c]);
    text += '\n';
  }
  return text;
}

}  // namespace

std::string table_of(comparison const& all, options const& o) {
  std::string text =
      fmt::format("{} layer{}, {} experts, top-{}, {} rank{}, {} node{}, {} redundant",
                  all.loads.num_layers, all.loads.num_layers == 1 ? "" : "s", all.loads.num_experts,
                  all.topk, o.where.num_ranks, o.where.num_ranks == 1 ? "" : "s", o.where.num_nodes,
                  o.where.num_nodes == 1 ? "" : "s", o.where.redundant);
  if (all.trace) text += fmt::format(", {} tokens", all.trace->num_tokens);
  text += "\n\n";
  std::vector<std::string> head = {"policy",      "max/mean",    "worst layer", "time-weighted",
                                   "ranks/token", "nodes/token", "wire/token"};
  std::vector<std::string> floor = {"floor", "", "", "", "", "", ""};
  for (std::size_t i = 0; i < all.floor.size(); ++i) {
    head.push_back(fmt::format("steps of {}", all.tokens_per_step[i]));
    floor.push_back(number(all.floor[i], 3));
  }
  head.insert(head.end(), {"moved", "seconds"});
  floor.insert(floor.end(), {"", ""});
  floor[1] = number(all.bound, 4);
  std::vector<std::vector<std::string>> lines = {head, line_of(all.present)};
  for (auto const& out : all.outcomes) lines.push_back(line_of(out));
  lines.push_back(floor);
  text += aligned(lines);
  text +=
      "\nmax/mean: load of the busiest rank over the mean, mean over layers. Its floor: what no "
      "placement "
      "without replicas can be below.\nsteps of n: the same within steps of n tokens. The floor "
      "there is "
      "what chance alone makes of a perfect placement.\n";
  if (std::any_of(all.outcomes.begin(), all.outcomes.end(), [](auto const& x) { return !x.valid; }))
    text += "* holds an expert twice on a rank; for comparison only\n";
  for (auto const& reason : all.left_out) text += "left out: " + reason + "\n";
  return text;
}

std::string json_of(comparison const& all) {
  std::string text = "[";
  for (auto const& out : all.outcomes) {
    auto const& where = out.where;
    json steps = json::array();
    for (std::size_t i = 0; i < all.floor.size(); ++i) {
      json step = {
          {"tokens", all.tokens_per_step[i]}, {"floor", all.floor[i]}, {"measured", nullptr}};
      if (out.step_imbalance[i]) step["measured"] = *out.step_imbalance[i];
      steps.push_back(std::move(step));
    }
    json o = {{"policy", out.name},
              {"layers", where.num_layers},
              {"experts", where.num_experts},
              {"ranks", where.num_ranks},
              {"nodes", where.num_nodes},
              {"slots", where.num_slots},
              {"valid", out.valid},
              {"max_over_mean_mean", out.balance.mean},
              {"max_over_mean_worst", out.balance.worst},
              {"max_over_mean_time_weighted", out.balance.time_weighted},
              {"ranks_per_token", nullptr},
              {"nodes_per_token", nullptr},
              {"wire_bytes_per_token", nullptr},
              {"steps", std::move(steps)},
              {"moved_bytes", out.moved_bytes},
              {"seconds", out.seconds}};
    if (out.distance) {
      o["ranks_per_token"] = out.distance->ranks_per_token;
      o["nodes_per_token"] = out.distance->nodes_per_token;
      o["wire_bytes_per_token"] = *out.wire_bytes;
    }
    json rows = json::array();
    for (int l = 0; l < where.num_layers; ++l)
      rows.push_back(std::vector<std::int32_t>(where.layer(l).begin(), where.layer(l).end()));
    o["placement"] = std::move(rows);
    text += (text.size() == 1 ? "\n" : ",\n") + o.dump();
  }
  return text + "\n]\n";
}

result<void> write_text(std::filesystem::path const& file, std::string const& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  if (!out.flush())
    return error{error_code::io, fmt::format("{}: cannot be written", file.string())};
  return {};
}

}  // namespace ferry::place_tool
