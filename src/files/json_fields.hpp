// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Reading checked fields out of a JSON object, with one kind of message for all of them.
#pragma once

#include "base/fail.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ferry {

/// The fields of one object. The first error is kept, and every later read then returns its
/// fallback, so that a long list of reads needs one check at its end.
class json_fields {
 public:
  /// `where` is what messages begin with: the file, and the object in it.
  json_fields(nlohmann::json const& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  /// A missing field and a null are the same thing.
  nlohmann::json const* find(std::string_view name) const {
    auto at = object_.find(std::string(name));
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  /// `fallback` where the field is missing; without one it must be there.
  std::int64_t integer(std::string_view name, std::int64_t low, std::int64_t high,
                       std::optional<std::int64_t> fallback = {}) {
    auto* field = present(name, fallback.has_value());
    if (!field) return fallback.value_or(low);
    if (!field->is_number_integer()) return wrong(name, "a whole number", *field), low;
    // Unsigned numbers beyond int64 would turn negative, and are out of any limit anyway.
    bool huge = field->is_number_unsigned() && field->get<std::uint64_t>() > INT64_MAX;
    auto value = huge ? INT64_MAX : field->get<std::int64_t>();
    if (huge || value < low || value > high) {
      refuse(fail(error_code::malformed_input, "{}: {} is {}, not in {}..{}", where_, name,
                  field->dump(), low, high));
      return low;
    }
    return value;
  }

  /// As `integer`, for a real number.
  double number(std::string_view name, double low, double high,
                std::optional<double> fallback = {}) {
    auto* field = present(name, fallback.has_value());
    if (!field) return fallback.value_or(low);
    if (!field->is_number()) return wrong(name, "a number", *field), low;
    auto value = field->get<double>();
    if (!(value >= low && value <= high)) {
      refuse(fail(error_code::malformed_input, "{}: {} is {}, not in {}..{}", where_, name, value,
                  low, high));
      return low;
    }
    return value;
  }

  bool boolean(std::string_view name, bool fallback) {
    auto* field = find(name);
    if (!field) return fallback;
    if (!field->is_boolean()) return wrong(name, "true or false", *field), fallback;
    return field->get<bool>();
  }

  std::string text(std::string_view name, std::optional<std::string> fallback = {}) {
    auto* field = present(name, fallback.has_value());
    if (!field) return fallback.value_or("");
    if (!field->is_string()) return wrong(name, "a string", *field), "";
    return field->get<std::string>();
  }

  /// Keeps the first of all errors.
  void refuse(error why) {
    if (!first_) first_ = std::move(why);
  }
  /// "field is X, not what it should be".
  void wrong(std::string_view name, std::string_view expected, nlohmann::json const& field) {
    auto shown = field.dump(-1, ' ', true);
    if (shown.size() > 60) shown = shown.substr(0, 60) + "...";
    refuse(
        fail(error_code::malformed_input, "{}: {} is {}, not {}", where_, name, shown, expected));
  }
  bool good() const { return !first_; }
  result<void> outcome() const {
    if (first_) return *first_;
    return {};
  }
  std::string const& where() const { return where_; }

 private:
  nlohmann::json const* present(std::string_view name, bool may_lack) {
    auto* field = find(name);
    if (!field && !may_lack)
      refuse(fail(error_code::malformed_input, "{}: {} is missing", where_, name));
    return field;
  }

  nlohmann::json const& object_;
  std::string where_;
  std::optional<error> first_;
};

}  // namespace ferry
