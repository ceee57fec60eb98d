// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Byte orders of what a NIC reads and writes. Every device that runs ferry is little-endian
/// itself.
#pragma once

#include <ferry/base/platform.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace ferry::device_verbs {

static_assert(std::endian::native == std::endian::little);

/// The number whose bytes lie in memory the other way round: to and from big endian. Written as
/// shifts, which every compiler for every device turns into its own instruction.
template <std::unsigned_integral T>
FERRY_FN constexpr T big(T value) {
  T swapped = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    swapped = static_cast<T>(swapped | ((value >> (8 * i)) & 0xff) << (8 * (sizeof(T) - 1 - i)));
  return swapped;
}

FERRY_FN constexpr std::uint32_t low_half(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
FERRY_FN constexpr std::uint32_t high_half(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace ferry::device_verbs
