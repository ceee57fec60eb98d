// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// fp16: the IEEE half.
#pragma once

#include <ferry/base/float_bits.hpp>

#include <cstdint>

namespace ferry {

/// 1 sign, 5 exponent (bias 15) and 10 mantissa bits.
struct fp16 {
  static constexpr dtype type = dtype::fp16;
  static constexpr float largest = 65504.0f;

  std::uint16_t bits;

  friend constexpr bool operator==(fp16,
                                   fp16) = default;  // of codes: NaN equals itself, -0 is not 0
};

FERRY_FN constexpr float to_float(fp16 code) {
  std::uint32_t const sign = (code.bits & 0x8000u) << 16;
  std::uint32_t const rest = (code.bits & 0x7FFFu) << 13;
  std::uint32_t const normal = rest + (112u << 23);
  // A subnormal is given the exponent of 2^-14 and then has that one taken off again.
  std::uint32_t const subnormal = bits_of(float_of(rest + (113u << 23)) - 0x1p-14f);
  std::uint32_t const finite = select(mask_below(rest, 0x0400u << 13), subnormal, normal);
  return float_of(sign | select(mask_below(rest, 0x7C00u << 13), finite, rest | f32_infinity));
}

/// A NaN keeps its sign and upper payload and becomes quiet.
template <>
FERRY_FN constexpr fp16 from_float<fp16>(float x) {
  std::int32_t const magnitude = magnitude_bits(x);
  std::uint32_t const bits = static_cast<std::uint32_t>(magnitude);
  std::uint32_t const sign = bits_of(x) >> 16 & 0x8000u;
  std::uint32_t const normal = (bits - (112u << 23) + 0xFFFu + (bits >> 13 & 1u)) >> 13;
  // The last bit of a number near 0.5 is worth 2^-24, which is fp16's smallest step.
  std::uint32_t const subnormal = bits_of(float_of(bits) + 0.5f) - bits_of(0.5f);
  std::uint32_t const finite = select(mask_below(magnitude, 113 << 23), subnormal, normal);
  std::uint32_t const bounded = select(mask_below(magnitude, 143 << 23), finite, 0x7C00u);
  std::uint32_t const quiet = 0x7E00u | (bits >> 13 & 0x3FFu);
  return {static_cast<std::uint16_t>(sign | select(mask_nan(magnitude), quiet, bounded))};
}

}  // namespace ferry
