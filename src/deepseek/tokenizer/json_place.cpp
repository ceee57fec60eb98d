// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/json_place.hpp"

#include "base/fail.hpp"
#include "files/json_text.hpp"

#include <cstdint>

namespace ferry::deepseek {

namespace {

constexpr std::size_t largest_file = std::size_t{256} << 20;

error wrong_type(json_place const& at, std::string_view expected) {
  return fail(error_code::malformed_input, "{}: {} where {} should be",
              at.path.empty() ? "the document" : at.path, at.value->type_name(), expected);
}

}  // namespace

result<std::optional<json_place>> json_place::find(std::string_view name) const {
  if (!value->is_object()) return wrong_type(*this, "an object");
  auto member = value->find(std::string(name));
  if (member == value->end() || member->is_null()) return std::optional<json_place>();
  return std::optional(
      json_place{&*member, path.empty() ? std::string(name) : fmt::format("{}.{}", path, name)});
}

result<json_place> json_place::at(std::string_view name) const {
  FERRY_TRY(auto member, find(name));
  if (!member)
    return fail(error_code::malformed_input, "{}{}{}: missing", path, path.empty() ? "" : ".",
                name);
  return *std::move(member);
}

json_place json_place::element(std::size_t index) const {
  return {&(*value)[index], fmt::format("{}[{}]", path, index)};
}

result<std::string_view> json_place::text() const {
  if (!value->is_string()) return wrong_type(*this, "a string");
  return std::string_view(*value->get_ptr<std::string const*>());
}

result<bool> json_place::flag() const {
  if (!value->is_boolean()) return wrong_type(*this, "true or false");
  return value->get<bool>();
}

result<std::int64_t> json_place::integer(std::int64_t low, std::int64_t high) const {
  if (!value->is_number_integer()) return wrong_type(*this, "a whole number");
  bool beyond = value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX;
  if (beyond || value->get<std::int64_t>() < low || value->get<std::int64_t>() > high)
    return fail(error_code::malformed_input, "{}: {} is not in {}..{}", path, value->dump(), low,
                high);
  return value->get<std::int64_t>();
}

result<json const*> json_place::array() const {
  if (!value->is_array()) return wrong_type(*this, "an array");
  return value;
}

result<json const*> json_place::object() const {
  if (!value->is_object()) return wrong_type(*this, "an object");
  return value;
}

result<bool> json_place::flag_or(std::string_view name, bool fallback) const {
  FERRY_TRY(auto member, find(name));
  return member ? member->flag() : result<bool>(fallback);
}

result<std::string_view> json_place::type() const {
  FERRY_TRY(auto member, at("type"));
  return member.text();
}

result<json> read_json(std::filesystem::path const& file) {
  FERRY_TRY(auto text, read_text_file(file, largest_file));
  return parse_json(text, file.string());
}

}  // namespace ferry::deepseek
