// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The 256 printable characters by which byte-level vocabularies spell bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ferry::deepseek {

/// How a vocabulary spells one byte, in UTF-8.
std::string spelling_of(unsigned char byte);

/// The bytes that a token of a vocabulary spells; none if a character of it stands for no byte.
std::optional<std::string> bytes_spelled_by(std::string_view token);

}  // namespace ferry::deepseek
