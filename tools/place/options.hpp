// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The command line of ferry-place.
#pragma once

#include <ferry/placement.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <variant>
#include <vector>

namespace ferry::place_tool {

/// Most ranks, nodes, experts and the like.
inline constexpr int most_count = 1 << 20;

/// What the user asked for, checked as far as one value tells.
struct options {
  std::optional<std::filesystem::path> loads_file;  ///< one of these two
  std::optional<std::filesystem::path> choices_file;
  std::optional<std::filesystem::path> present_file;
  std::optional<std::filesystem::path> json_file;
  std::optional<std::filesystem::path> svg_file;
  std::vector<placement_policy> policies;  ///< empty: all that apply
  std::optional<int> num_experts;          ///< with choices; otherwise their highest id + 1
  std::optional<int> topk;                 ///< with loads; choices bring their own
  placement_options where;
  replica_choice rule = replica_choice::hash;
  traffic_shape traffic;
  std::vector<std::int64_t> tokens_per_step = {128, 4096};
};

/// The options, or the status to end with: help and errors are printed already.
std::variant<options, int> parse(int argc, char** argv);

}  // namespace ferry::place_tool
