// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Patterns of tokenizer.json are written for Oniguruma with Ruby's syntax; PCRE2 reads some of the
/// same signs in another way.
#pragma once

#include <ferry/base/result.hpp>

#include <string>
#include <string_view>

namespace ferry::deepseek {

/// The PCRE2 pattern (UTF, UCP, MULTILINE) that matches what Oniguruma's `pattern` matches.
/// Rewritten are \s \S \w \W \b \B \h \H \v \uHHHH, property and script names, (?m), hyphens in
/// classes, {n}? and quantifiers of quantifiers, {n,m}+ among them.
/// Errors   malformed_input what neither understands; unsupported what the two read differently
///          and is not rewritten: nested classes, && in them, POSIX brackets, back references, ...
result<std::string> pcre2_from_oniguruma(std::string_view pattern);

}  // namespace ferry::deepseek
