// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The command line of ferry-bench.
#pragma once

#include "bench_case.hpp"

#include <ferry/result.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ferry::bench {

/// Statuses with which ferry-bench ends.
inline constexpr int succeeded = 0, failed = 1, misused = 2, lost = 3;

/// Everything that the command line says. Lists are swept: one case for each combination.
struct settings {
  std::vector<operation> ops = {operation::dispatch, operation::combine, operation::step};
  std::vector<int> tokens = {1, 8, 32, 128};
  std::vector<int> hidden = {7168};
  std::vector<int> topk = {8};
  std::vector<int> experts = {256};
  std::vector<wire> wires = {wire::bf16};
  std::vector<layout> layouts = {layout::grouped};
  std::vector<reduction> reductions = {reduction::per_rank};
  std::vector<result_rows> results = {result_rows::experts};
  std::vector<int> slots = {1};
  std::vector<int> queues = {1};
  std::vector<routing_kind> routings = {routing_kind::uniform};
  std::vector<int> layers = {0};
  std::optional<std::string> choices_file;
  bool topk_given = false;
  bool slots_given = false;

  std::optional<int> ranks;  ///< of threads; nothing under mpirun
  double seconds = 1;        ///< to measure each of a case's programs for, at most
  std::uint64_t seed = 1;    ///< of the routing
  std::optional<std::string> json_file;
  bool sizes = false;      ///< print the windows' bytes and end
  int ranks_per_node = 0;  ///< ranks play nodes of so many; 0: one node. --sizes: as for two hops
  ferry::carrier carrier = carrier::verbs;  ///< between nodes
  ferry::hops hops = hops::automatic;
  std::chrono::milliseconds timeout{60000};
};

/// Reads the command line. Prints help, the version or what is wrong itself.
/// Returns  the settings, or the status to end with at once
std::variant<settings, int> parse(int argc, char** argv);

/// The cases that the lists span, in the order op, then tokens, innermost the layers.
/// Errors   invalid_argument more queues than slots, or options that ferry refuses, naming the case
result<std::vector<bench_case>> cases_of(settings const& s, int ranks);

/// The options of the exchange of a case.
/// Shapes   `capacity` rows of each expert where the layout is padded
exchange_options options_of(bench_case const& c, std::int64_t capacity);

/// "op=step tokens=8 ...": the case in the words of the command line.
std::string describe(bench_case const& c);

}  // namespace ferry::bench
