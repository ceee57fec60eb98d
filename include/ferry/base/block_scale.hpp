// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The arithmetic of fp8 rows: one scale per block of `scale_block` columns.
///
/// A pass over a block first collects its `block_range`, then makes the scale, then the codes:
///   f32 scale     scale = max(amax, 1e-4) / largest_finite<T>, code = from_float<T>(x / scale).
///                 True division, as DeepSeek's act_quant: a multiplication by the reciprocal
///                 gives other codes now and then.
///   e8m0 scale    that scale for OCP raised to a power of two. Its codes serve both flavours:
///                 0x80 and NaN never occur, so each means in FNUZ exactly half of what it means
///                 in OCP, and a receiver of that flavour takes the doubled scale.
/// Numbers that are none:
///   amax is taken over the finite elements: one infinity does not wipe out its neighbours. An
///   infinity becomes the largest code, that is the block's largest representable value.
///   NaN under an f32 scale becomes the NaN code, and only that element is lost. Under an e8m0
///   scale there is no such code: the scale becomes NaN, all codes 0, and the block reads as NaN.
/// A block of zeros has the scale of amax = 1e-4 and codes 0.
#pragma once

#include <ferry/base/exponent8.hpp>
#include <ferry/base/float8.hpp>
#include <ferry/base/float_bits.hpp>

#include <cstdint>

namespace ferry {

/// Below this, amax counts as this: a scale is never zero or subnormal.
inline constexpr float smallest_amax = 1e-4f;

/// What a block's scale depends on. Two integers, so that collecting becomes vector code and lanes
/// can exchange their parts.
struct block_range {
  std::int32_t largest = 0;  ///< bits of the largest finite |x|
  std::int32_t has_nan = 0;  ///< 1 if one element is NaN

  FERRY_FN constexpr void add(float x) {
    std::int32_t const magnitude = magnitude_bits(x);
    std::int32_t const infinity = static_cast<std::int32_t>(f32_infinity);
    std::int32_t const finite =
        magnitude & static_cast<std::int32_t>(mask_below(magnitude, infinity));
    largest = finite > largest ? finite : largest;
    has_nan |= static_cast<std::int32_t>(mask_nan(magnitude) & 1u);
  }
  FERRY_FN constexpr void add(block_range other) {
    largest = other.largest > largest ? other.largest : largest;
    has_nan |= other.has_nan;
  }
  FERRY_FN constexpr float amax() const { return float_of(static_cast<std::uint32_t>(largest)); }
};

/// The f32 scale of a block whose codes are T (e4m3 or e4m3fnuz).
template <class T>
FERRY_FN constexpr float block_scale(float amax) {
  return (amax > smallest_amax ? amax : smallest_amax) / largest_finite<T>;
}
template <class T>
FERRY_FN constexpr float block_scale(block_range range) {
  return block_scale<T>(range.amax());
}

/// The power-of-two scale of a block, as an OCP receiver applies it. From 2^-22 (amax 1e-4) to
/// 2^120 (amax the largest f32), so neither end of e8m0 is ever met.
FERRY_FN constexpr e8m0 block_exponent(block_range range) {
  e8m0 const scale = from_float<e8m0>(block_scale<e4m3>(range.amax()));
  return {static_cast<std::uint8_t>(
      select(mask_equal(static_cast<std::uint32_t>(range.has_nan), 0), scale.bits, 0xFFu))};
}

/// The same scale, as a FNUZ receiver applies it: twice as much. NaN stays NaN.
FERRY_FN constexpr e8m0 exponent_for_fnuz(e8m0 scale) {
  return {static_cast<std::uint8_t>(select(mask_equal(scale.bits, 0xFFu), 0xFFu, scale.bits + 1u))};
}

/// The code of one element under an f32 scale.
template <class T>
FERRY_FN constexpr T quantise(float x, float scale) {
  return from_float<T>(x / scale);
}

/// The code of one element under a `block_exponent`: at most 0x7E in magnitude, never 0x80.
/// Multiplies by the reciprocal, which is exact here: a power of two inside f32's normal range.
FERRY_FN constexpr e4m3 quantise(float x, e8m0 scale) {
  float const reciprocal =
      float_of(select(mask_equal(scale.bits, 0xFFu), 0u, (254u - scale.bits) << 23));
  e4m3 const code = from_float<e4m3>(x * reciprocal);
  std::uint32_t const rest = code.bits & 0x7Fu;  // 0x7F: from a NaN, whose scale tells of it
  return {static_cast<std::uint8_t>(
      select(mask_equal(rest, 0) | mask_equal(rest, 0x7Fu), 0u, code.bits))};
}

/// The value of a code: one product, one rounding.
template <class T>
FERRY_FN constexpr float dequantise(T code, float scale) {
  return to_float(code) * scale;
}
template <class T>
FERRY_FN constexpr float dequantise(T code, e8m0 scale) {
  return to_float(code) * to_float(scale);
}

}  // namespace ferry
