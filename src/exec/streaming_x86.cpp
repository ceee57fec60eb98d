// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include <ferry/exec/cpu/streaming.hpp>

#include <emmintrin.h>

#include <cstdint>
#include <cstring>

namespace ferry {

void stream_copy(std::byte* to, std::byte const* from, std::size_t bytes) {
  // Whole lines, so that each leaves the core as one write.
  constexpr std::size_t line = 64;
  std::size_t const before = -reinterpret_cast<std::uintptr_t>(to) % line;
  if (bytes < before + line) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, before);
  std::size_t at = before;
  for (; at + line <= bytes; at += line) {
    auto const* const source = reinterpret_cast<__m128i const*>(from + at);
    auto* const target = reinterpret_cast<__m128i*>(to + at);
    __m128i const a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1),
                  c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

void finish_streaming() {
  _mm_sfence();
}

}  // namespace ferry
