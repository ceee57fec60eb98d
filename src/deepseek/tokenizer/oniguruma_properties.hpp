// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Unicode properties by the names that Oniguruma knows.
#pragma once

#include <string_view>

namespace ferry::deepseek {

/// Whether the two libraries, or two versions of one, define it differently.
/// Shapes   name in lower case, without blanks, dashes and underscores; so below
bool property_is_disputed(std::string_view name);

/// The name of a category or binary property in PCRE2; empty for any other, which is a script's.
std::string_view pcre2_property(std::string_view name);

}  // namespace ferry::deepseek
