// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "deepseek/tokenizer/byte_alphabet.hpp"

#include "files/utf8.hpp"

#include <array>
#include <cstdint>

namespace ferry::deepseek {

namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// Printable bytes of Latin-1 stand for themselves; the others, in order, are U+0100 and on.
constexpr std::array<std::uint32_t, 256> alphabet = [] {
  std::array<std::uint32_t, 256> characters{};
  std::uint32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte)
    characters[byte] = stands_for_itself(byte) ? byte : next++;
  return characters;
}();

constexpr std::uint32_t alphabet_end = 0x100 + 68;

// The byte of each character below alphabet_end, -1 where there is none.
constexpr std::array<int, alphabet_end> bytes_of_alphabet = [] {
  std::array<int, alphabet_end> bytes{};
  bytes.fill(-1);
  for (int byte = 0; byte < 256; ++byte) bytes[alphabet[static_cast<std::size_t>(byte)]] = byte;
  return bytes;
}();

}  // namespace

std::string spelling_of(unsigned char byte) {
  std::string spelling;
  append_utf8(spelling, alphabet[byte]);
  return spelling;
}

std::optional<std::string> bytes_spelled_by(std::string_view token) {
  std::string bytes;
  while (!token.empty()) {
    auto front = front_of(token);
    if (front.what != utf8_front::kind::character || front.code_point >= alphabet_end ||
        bytes_of_alphabet[front.code_point] < 0)
      return std::nullopt;
    bytes.push_back(static_cast<char>(bytes_of_alphabet[front.code_point]));
    token.remove_prefix(front.bytes);
  }
  return bytes;
}

}  // namespace ferry::deepseek
