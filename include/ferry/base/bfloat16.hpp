// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// bf16: the upper half of an f32.
#pragma once

#include <ferry/base/float_bits.hpp>

#include <cstdint>

namespace ferry {

/// 1 sign, 8 exponent and 7 mantissa bits.
struct bf16 {
  static constexpr dtype type = dtype::bf16;
  static constexpr float largest = 0x1.FEp127f;

  std::uint16_t bits;

  friend constexpr bool operator==(bf16,
                                   bf16) = default;  // of codes: NaN equals itself, -0 is not 0
};

FERRY_FN constexpr float to_float(bf16 code) {
  return float_of(static_cast<std::uint32_t>(code.bits) << 16);
}

/// A NaN keeps its sign and upper payload and becomes quiet.
template <>
FERRY_FN constexpr bf16 from_float<bf16>(float x) {
  std::uint32_t const bits = bits_of(x);
  std::uint32_t const rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  std::uint32_t const quiet = bits >> 16 | 0x40u;
  return {static_cast<std::uint16_t>(select(mask_nan(magnitude_bits(x)), quiet, rounded))};
}

}  // namespace ferry
