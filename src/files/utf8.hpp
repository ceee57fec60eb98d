// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// UTF-8, with an answer for every byte string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry {

/// What stands at the front of a byte string.
struct utf8_front {
  enum class kind {
    character,  ///< a whole character
    broken,     ///< bytes that begin no character: one, or the longest start of one that breaks off
    incomplete,  ///< all the bytes there are begin a character; more could complete it
  };
  kind what;
  std::size_t bytes;         ///< how many of them
  std::uint32_t code_point;  ///< of a whole character
};

/// `text` is not empty.
utf8_front front_of(std::string_view text);

/// How many bytes at the front of `text` are whole characters.
std::size_t valid_prefix(std::string_view text);

/// The last character of `text` as the bytes of a whole character; empty if there is none.
std::string_view last_character(std::string_view text);

void append_utf8(std::string& to, std::uint32_t code_point);

/// Moves the characters that are whole from the front of `from` to the end of `to`; bytes that can
/// become none are replaced by U+FFFD. What more bytes could complete stays in `from`.
void move_characters(std::string& from, std::string& to);

/// The character that stands for broken bytes.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

}  // namespace ferry
