// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Loads, choices and placements in files. The library is ferry::files.
#pragma once

#include <ferry/balance/expert_loads.hpp>
#include <ferry/balance/load_window.hpp>
#include <ferry/balance/placement.hpp>
#include <ferry/balance/routing_trace.hpp>
#include <ferry/base/result.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ferry {

/// Loads and, where they were sampled, choices.
struct load_file {
  std::vector<load_window> windows;
  std::optional<routing_trace> sample;
};

/// Writes `windows` and the sample as JSON: {"ferry_loads": 1, "windows": [{"layers", "experts",
/// "steps", "sums": [layers][experts], "sums_of_squares": ...}], "sample": {"topk", "choices":
/// [tokens][layers][topk]}}. `logical_count`, the sums of the last window, is there too, for
/// engines that read nothing else. Numbers come back bit for bit. Errors   invalid_argument no
/// window; io
result<void> save_loads(std::filesystem::path const& file, load_file const& loads);

/// Reads what `save_loads` wrote.
/// Errors   io; malformed_input; invalid_argument numbers that no steps could have made
result<load_file> open_load_file(std::filesystem::path const& file);

/// Reads loads for the solvers: a safetensors file with `weight` [layers, experts] (f32, f64, or
/// whole numbers), or JSON, either from `save_loads` (one per window that counted something) or
/// {"logical_count": [layers][experts]}, also of several windows [windows][layers][experts]. Errors
/// io; malformed_input not one of these; invalid_argument what `validate` refuses
result<std::vector<expert_loads>> read_loads(std::filesystem::path const& file);

/// Loads for the solvers together with the choices that `save_loads` wrote beside them.
struct sampled_loads {
  std::vector<expert_loads> windows;
  std::optional<routing_trace> sample;
};
/// As `read_loads`, with the sample where the file has one.
/// Errors   as read_loads
result<sampled_loads> read_sampled_loads(std::filesystem::path const& file);

/// Reads choices: npy, or safetensors with one tensor or one called `choices`; int16, int32 or
/// int64, [tokens, layers, topk], or [tokens, topk] of one layer. Errors   io; malformed_input
/// other types or shapes; invalid_argument an id below -1, or beyond 2^31 - 1
result<routing_trace> read_choices(std::filesystem::path const& file);

/// A placement as JSON text: {"layers", "experts", "ranks", "nodes", "slots", "placement":
/// [layers][slots]}.
std::string to_json(placement const& where);
/// Reads that, or, of an object or list of objects as `ferry-place --json` writes them, the first.
/// Errors   io; malformed_input; invalid_argument what `validate` refuses
result<placement> read_placement(std::filesystem::path const& file);

}  // namespace ferry
