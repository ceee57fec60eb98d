// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// e8m0: a power of two in one byte, the exponent of an f32 alone.
#pragma once

#include <ferry/base/float_bits.hpp>

#include <cstdint>

namespace ferry {

/// 2^(bits - 127); 0xFF is NaN. No zero, no sign.
struct e8m0 {
  static constexpr dtype type = dtype::e8m0;
  static constexpr float largest = 0x1p127f;

  std::uint8_t bits;

  friend constexpr bool operator==(e8m0, e8m0) = default;  // of codes: NaN equals itself
};

FERRY_FN constexpr float to_float(e8m0 code) {
  std::uint32_t const normal = static_cast<std::uint32_t>(code.bits) << 23;
  std::uint32_t const number =
      select(mask_equal(code.bits, 0), 0x0040'0000u, normal);  // 2^-127: subnormal
  return float_of(select(mask_equal(code.bits, 0xFFu), f32_nan, number));
}

/// The smallest power of two that is not below x: a scale must not make a block overflow, so this
/// format rounds up, not to nearest. Zero and all up to 2^-127 become 2^-127; what lies beyond
/// 2^127, infinity too, saturates. NaN and numbers below zero become NaN.
template <>
FERRY_FN constexpr e8m0 from_float<e8m0>(float x) {
  std::int32_t const magnitude = magnitude_bits(x);
  std::uint32_t const up = (static_cast<std::uint32_t>(magnitude) + 0x7F'FFFFu) >> 23;
  std::uint32_t const raised = select(mask_below(0x0040'0000, magnitude), up, 0u);
  std::uint32_t const bounded = select(mask_below(raised, 0xFEu), raised, 0xFEu);
  std::uint32_t const sign = 0u - (bits_of(x) >> 31);
  std::uint32_t const nan = mask_nan(magnitude) | (sign & mask_below(0, magnitude));
  return {static_cast<std::uint8_t>(select(nan, 0xFFu, bounded))};
}

}  // namespace ferry
