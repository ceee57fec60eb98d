// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What ferry-place prints and writes.
#pragma once

#include "options.hpp"
#include "solve.hpp"

#include <ferry/result.hpp>

#include <filesystem>
#include <string>

namespace ferry::place_tool {

/// A table for people: one line a policy, and the floor that chance sets below.
std::string table_of(comparison const& all, options const& o);

/// A list with one object a policy, an object a line. What is not known (distances without choices)
/// is null.
std::string json_of(comparison const& all);

/// Errors   io
result<void> write_text(std::filesystem::path const& file, std::string const& text);

}  // namespace ferry::place_tool
