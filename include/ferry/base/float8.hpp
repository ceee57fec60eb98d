// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// fp8 E4M3 in its two flavours: OCP (NVIDIA, gfx950) and FNUZ (gfx942).
///
/// | | bias | largest | NaN | -0 |
/// |---|---|---|---|---|
/// | e4m3 | 7 | 448 | 0x7F, 0xFF | 0x80 |
/// | e4m3fnuz | 8 | 240 | 0x80 | none |
///
/// Neither has an infinity. Every code but 0x7F, 0x80 and 0xFF means half as much in FNUZ.
#pragma once

#include <ferry/base/float_bits.hpp>

#include <cstdint>

namespace ferry {

/// OCP: 1 sign, 4 exponent and 3 mantissa bits.
struct e4m3 {
  static constexpr dtype type = dtype::e4m3;
  static constexpr float largest = 448.0f;
  static constexpr std::uint32_t bias = 7;
  static constexpr std::uint32_t largest_code = 0x7E;
  static constexpr std::uint32_t nan_code = 0x7F;  ///< with either sign
  static constexpr bool has_negative_zero = true;

  std::uint8_t bits;

  friend constexpr bool operator==(e4m3,
                                   e4m3) = default;  // of codes: NaN equals itself, -0 is not 0
};

/// FNUZ ("finite, NaN, unsigned zero").
struct e4m3fnuz {
  static constexpr dtype type = dtype::e4m3fnuz;
  static constexpr float largest = 240.0f;
  static constexpr std::uint32_t bias = 8;
  static constexpr std::uint32_t largest_code = 0x7F;
  static constexpr std::uint32_t nan_code = 0x80;
  static constexpr bool has_negative_zero = false;

  std::uint8_t bits;

  friend constexpr bool operator==(e4m3fnuz, e4m3fnuz) = default;  // of codes: NaN equals itself
};

namespace float8_fields {

/// The magnitude that the lower seven bits stand for, NaN codes aside.
template <class T>
FERRY_FN constexpr std::uint32_t widen(std::uint32_t code) {
  constexpr std::uint32_t rebias = 127 - T::bias;
  std::uint32_t const rest = code << 20;
  // A subnormal is given the smallest normal exponent and then has that one taken off again.
  constexpr float smallest_normal = float_of((rebias + 1) << 23);
  std::uint32_t const subnormal = bits_of(float_of(rest + ((rebias + 1) << 23)) - smallest_normal);
  return select(mask_below(code, 8u), subnormal, rest + (rebias << 23));
}

/// A magnitude, at most twice the largest finite value, on the grid of T; above `T::largest_code`
/// where it lies beyond that value.
template <class T>
FERRY_FN constexpr std::uint32_t narrow(std::int32_t magnitude) {
  // Below the smallest normal number the grid gets no finer.
  constexpr std::int32_t smallest = static_cast<std::int32_t>(128 - T::bias) << 23;
  std::int32_t const own = magnitude & static_cast<std::int32_t>(f32_infinity);
  std::int32_t const exponent = own > smallest ? own : smallest;
  // The last bit of a number near this one is worth a step of the grid.
  std::uint32_t const shifter = static_cast<std::uint32_t>(exponent) + (20u << 23);
  std::uint32_t const steps =
      bits_of(float_of(static_cast<std::uint32_t>(magnitude)) + float_of(shifter)) - shifter;
  return steps + (static_cast<std::uint32_t>(exponent - smallest) >> 20);
}

/// `code`, a magnitude, with the sign of x.
template <class T>
FERRY_FN constexpr std::uint32_t with_sign(std::uint32_t code, float x) {
  std::uint32_t const sign = bits_of(x) >> 24 & 0x80u;
  return code | (T::has_negative_zero ? sign : sign & ~mask_equal(code, 0));
}

/// |x|, NaN too, or `limit` where that is less.
FERRY_FN constexpr std::int32_t at_most(float x, float limit) {
  std::int32_t const most = static_cast<std::int32_t>(bits_of(limit));
  return magnitude_bits(x) < most ? magnitude_bits(x) : most;
}

/// The nearest code; saturates.
template <class T>
FERRY_FN constexpr T encode(float x) {
  std::uint32_t const bits = with_sign<T>(narrow<T>(at_most(x, T::largest)), x);
  std::uint32_t const nan = T::nan_code | (T::has_negative_zero ? bits & 0x80u : 0u);
  return {static_cast<std::uint8_t>(select(mask_nan(magnitude_bits(x)), nan, bits))};
}

}  // namespace float8_fields

FERRY_FN constexpr float to_float(e4m3 code) {
  std::uint32_t const sign = (code.bits & 0x80u) << 24;
  std::uint32_t const rest = code.bits & 0x7Fu;
  return float_of(sign |
                  select(mask_equal(rest, 0x7Fu), f32_nan, float8_fields::widen<e4m3>(rest)));
}

FERRY_FN constexpr float to_float(e4m3fnuz code) {
  std::uint32_t const sign = (code.bits & 0x80u) << 24;
  std::uint32_t const value = float8_fields::widen<e4m3fnuz>(code.bits & 0x7Fu);
  return float_of(sign | select(mask_equal(code.bits, 0x80u), f32_nan, value));
}

/// Saturates: what lies beyond 448, infinity too, becomes 448 with its sign. NaN keeps its sign.
template <>
FERRY_FN constexpr e4m3 from_float<e4m3>(float x) {
  return float8_fields::encode<e4m3>(x);
}

/// Saturates: what lies beyond 240, infinity too, becomes 240 with its sign. What rounds to zero,
/// and -0, becomes 0x00.
template <>
FERRY_FN constexpr e4m3fnuz from_float<e4m3fnuz>(float x) {
  return float8_fields::encode<e4m3fnuz>(x);
}

/// As from_float(), but what rounds past the largest finite value becomes NaN.
template <class T>
FERRY_FN constexpr T from_float_or_nan(float x) {
  std::uint32_t const code = float8_fields::narrow<T>(float8_fields::at_most(x, 2 * T::largest));
  T const in_range = from_float<T>(x);
  std::uint32_t const nan = T::nan_code | (in_range.bits & (T::has_negative_zero ? 0x80u : 0u));
  return {static_cast<std::uint8_t>(select(mask_below(T::largest_code, code), nan, in_range.bits))};
}

/// The FNUZ code that means exactly half of what `code` means: the same bits, but for -0 and NaN.
/// Doubling the scale makes up for the half.
FERRY_FN constexpr e4m3fnuz half_in_fnuz(e4m3 code) {
  std::uint32_t const no_negative_zero = select(mask_equal(code.bits, 0x80u), 0u, code.bits);
  std::uint32_t const nan = mask_equal(code.bits & 0x7Fu, 0x7Fu);
  return {static_cast<std::uint8_t>(select(nan, 0x80u, no_negative_zero))};
}

}  // namespace ferry
