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
  /// Cheaper, but what is not finite counts as itself: is_finite() then tells, and the rest is
  /// void.
  FERRY_FN constexpr void add_finite(float x) {
    std::int32_t const magnitude = magnitude_bits(x);
    largest = magnitude > largest ? magnitude : largest;
  }
  FERRY_FN constexpr bool is_finite() const {
    return largest < static_cast<std::int32_t>(f32_infinity);
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

/// The bits of quantise<T>(x, scale), where all elements of the block are finite and `scale` is
/// their block_scale: no quotient is then beyond the largest value of T. In a word, because a loop
/// that stores bytes has every step narrowed by the compiler; it is better narrowed once, behind
/// the last step.
///
/// No division for each x: in a loop the reciprocal is taken once, and a quotient is corrected by
/// what it leaves of x, which one fma finds exactly. That is the quotient rounded once (P.
/// Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990),
/// unless what is left is subnormal, and then the code is 0 either way.
template <class T>
FERRY_FN constexpr std::uint32_t finite_code_bits(float x, float scale) {
  float const size = float_of(static_cast<std::uint32_t>(magnitude_bits(x)));
  float quotient = size / scale;
  if (FERRY_HAS_FMA && !__builtin_is_constant_evaluated()) {
    float const reciprocal = 1.0f / scale;
    float const near = size * reciprocal;
    quotient = __builtin_fmaf(__builtin_fmaf(-near, scale, size), reciprocal, near);
  }
  return float8_fields::with_sign<T>(float8_fields::narrow<T>(magnitude_bits(quotient)), x);
}

/// The bits of quantise(x, scale), likewise.
FERRY_FN constexpr std::uint32_t finite_code_bits(float x, e8m0 scale) {
  float const reciprocal = float_of((254u - scale.bits) << 23);
  std::uint32_t const code = float8_fields::narrow<e4m3>(magnitude_bits(x * reciprocal));
  return float8_fields::with_sign<e4m3fnuz>(code, x);  // no negative zero
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
