// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The command line of ferry-decode.
#pragma once

#include "balancing.hpp"
#include "step_runner.hpp"

#include <ferry/deepseek/model.hpp>
#include <ferry/ferry.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ferry::decode {

struct options {
  std::filesystem::path model;

  std::vector<std::string> prompts;
  std::optional<std::filesystem::path> prompts_file;
  std::vector<std::string> token_ids;

  int max_new_tokens = 64;
  bool ignore_eos = false;
  double temperature = 0;  ///< 0: the best token, the lowest id among equals
  std::uint64_t seed = 0;

  std::string device;  ///< empty: the best that is there
  deepseek::product_kernels products = deepseek::product_kernels::automatic;
  dtype compute = dtype::f32;
  ferry::wire wire = wire::f32;
  ferry::wire combine_wire = wire::f32;
  ferry::reduction reduction = reduction::per_rank;
  ferry::layout layout = layout::grouped;
  std::chrono::milliseconds timeout{30000};
  int ranks_per_node = 0;

  step_options steps;
  balance_options balance;

  std::optional<std::filesystem::path> logits_file;
  std::optional<std::filesystem::path> json_file;
  std::optional<std::filesystem::path> trace_file;
  std::optional<std::filesystem::path> timeline_file;
  std::optional<std::string> show_tokens;
};

/// Exit statuses.
inline constexpr int succeeded = 0;
inline constexpr int failed = 1;
inline constexpr int misused = 2;  ///< the command line is wrong
inline constexpr int lost = 3;     ///< a rank did not come in time, or is gone

/// What to do, or the status to end with at once: after --help, --version or a mistake, which has
/// then been explained.
std::variant<options, int> parse(int argc, char** argv);

}  // namespace ferry::decode
