// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "files/utf8.hpp"

namespace ferry {

namespace {

// How a lead byte goes on: the number of bytes, and the range of the second byte, which keeps out
// overlong forms, surrogates and what lies beyond U+10FFFF (the later bytes are always 80..BF).
struct sequence_form {
  std::size_t bytes;
  unsigned char low, high;
};

sequence_form form_of(unsigned char lead) {
  if (lead >= 0xC2 && lead <= 0xDF) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead >= 0xE1 && lead <= 0xEF) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead >= 0xF1 && lead <= 0xF3) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

utf8_front front_of(std::string_view text) {
  using kind = utf8_front::kind;
  auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {kind::character, 1, lead};
  auto form = form_of(lead);
  if (form.bytes == 0) return {kind::broken, 1, 0};
  std::uint32_t code_point = lead & (0x7Fu >> form.bytes);
  for (std::size_t i = 1; i < form.bytes; ++i) {
    if (i == text.size()) return {kind::incomplete, i, 0};
    auto byte = static_cast<unsigned char>(text[i]);
    unsigned char low = i == 1 ? form.low : 0x80, high = i == 1 ? form.high : 0xBF;
    if (byte < low || byte > high) return {kind::broken, i, 0};
    code_point = code_point << 6 | (byte & 0x3Fu);
  }
  return {kind::character, form.bytes, code_point};
}

std::size_t valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    auto front = front_of(text.substr(at));
    if (front.what != utf8_front::kind::character) break;
    at += front.bytes;
  }
  return at;
}

std::string_view last_character(std::string_view text) {
  for (std::size_t bytes = 1; bytes <= 4 && bytes <= text.size(); ++bytes) {
    auto tail = text.substr(text.size() - bytes);
    auto front = front_of(tail);
    if (front.what == utf8_front::kind::character && front.bytes == bytes) return tail;
  }
  return {};
}

void append_utf8(std::string& to, std::uint32_t code_point) {
  auto put = [&](std::uint32_t byte) { to.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

void move_characters(std::string& from, std::string& to) {
  std::string_view rest = from;
  while (!rest.empty()) {
    auto front = front_of(rest);
    if (front.what == utf8_front::kind::incomplete) break;
    to += front.what == utf8_front::kind::character ? rest.substr(0, front.bytes)
                                                    : replacement_character;
    rest.remove_prefix(front.bytes);
  }
  from.erase(0, from.size() - rest.size());
}

}  // namespace ferry
