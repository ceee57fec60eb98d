// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Checked access to the parts of a JSON document. Messages begin with the place in the document.
#pragma once

#include <ferry/base/result.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace ferry::deepseek {

using json = nlohmann::json;

/// A value and its place, like "model.merges[3]".
struct json_place {
  json const* value;
  std::string path;

  /// The member `name` of an object; null and missing are both none.
  /// Errors   malformed_input this is no object
  result<std::optional<json_place>> find(std::string_view name) const;
  /// The same, which must be there.
  result<json_place> at(std::string_view name) const;
  /// The element `index` of an array of more.
  json_place element(std::size_t index) const;

  /// Errors   malformed_input the value is something else
  result<std::string_view> text() const;
  result<bool> flag() const;
  result<std::int64_t> integer(std::int64_t low, std::int64_t high) const;
  result<json const*> array() const;
  result<json const*> object() const;

  /// The member `name`, or `fallback` without it.
  result<bool> flag_or(std::string_view name, bool fallback) const;
  /// The member `type`: what most parts of a tokenizer begin with.
  result<std::string_view> type() const;
};

/// Reads a whole file.
/// Errors   as read_text_file and parse_json
result<json> read_json(std::filesystem::path const& file);

}  // namespace ferry::deepseek
