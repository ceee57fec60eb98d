// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// JSON from files that nobody vouches for.
#pragma once

#include <ferry/base/result.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace ferry {

/// The document in `text`. Stricter than the format asks: a name that stands twice in one object,
/// more than `max_depth` levels, or anything after the document is an error. `name` stands for the
/// file in messages.
/// Errors   malformed_input
result<nlohmann::json> parse_json(std::string_view text, std::string_view name, int max_depth = 64);

/// The whole of a file.
/// Errors   io it cannot be read, or is no regular file; malformed_input more than `max_bytes`
result<std::string> read_text_file(std::filesystem::path const& file, std::size_t max_bytes);

/// Whether the directory has the name. A link that leads nowhere is there, and reading it is an
/// error, where a file that is absent may be left out.
bool is_in_directory(std::filesystem::path const& file);

}  // namespace ferry
