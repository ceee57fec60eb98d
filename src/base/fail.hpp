// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Builds an error with a formatted message. For ferry's own sources: public headers need no fmt.
#pragma once

#include <ferry/base/result.hpp>

#include <fmt/format.h>

#include <source_location>

namespace ferry {

/// A format string that remembers where it stands, so that `error::where` is the caller.
template <class... Args>
struct located_format {
  template <class S>
  consteval located_format(S const& text, std::source_location at = std::source_location::current())
      : format(text), where(at) {}
  fmt::format_string<Args...> format;
  std::source_location where;
};

template <class... Args>
error fail(error_code code, located_format<std::type_identity_t<Args>...> text, Args&&... args) {
  return {code, fmt::format(text.format, std::forward<Args>(args)...), text.where};
}

/// The operating system's answer: "<what>: <strerror>".
error fail_errno(error_code code, std::string_view what, int errno_value,
                 std::source_location where = std::source_location::current());

}  // namespace ferry
