// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Four fp8 codes at a time, by plain arithmetic: what every target can do, and what instructions
/// that convert are held against.
#pragma once

#include <ferry/base/block_scale.hpp>
#include <ferry/base/float8.hpp>

#include <cstdint>

namespace ferry {

/// The contract of `Team::codes`. Each function returns four codes, the first in the lowest byte.
///   of<T>(a, b, c, d)     from_float<T>() of each, bit for bit: ties to even, saturating, NaN
///                         with its sign where T keeps one
///   power(a, b, c, d)     what quantise(x, e8m0) makes of the four products x * reciprocal, none
///                         of which is NaN: at most 0x7E in magnitude, never 0x80
struct software_codes {
  template <class T>
  FERRY_FN static std::uint32_t of(float a, float b, float c, float d) {
    return static_cast<std::uint32_t>(from_float<T>(a).bits) |
           static_cast<std::uint32_t>(from_float<T>(b).bits) << 8 |
           static_cast<std::uint32_t>(from_float<T>(c).bits) << 16 |
           static_cast<std::uint32_t>(from_float<T>(d).bits) << 24;
  }
  FERRY_FN static std::uint32_t power(float a, float b, float c, float d) {
    return without_negative_zero(of<e4m3>(a, b, c, d));
  }
  /// 0x00 for each byte that is 0x80.
  FERRY_FN static constexpr std::uint32_t without_negative_zero(std::uint32_t codes) {
    std::uint32_t const magnitudes = codes & 0x7F7F'7F7Fu;
    std::uint32_t const not_zero = (magnitudes + 0x7F7F'7F7Fu) & 0x8080'8080u;
    return codes & (not_zero | 0x7F7F'7F7Fu);
  }
};

}  // namespace ferry
