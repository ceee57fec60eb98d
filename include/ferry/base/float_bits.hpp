// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The bits of an f32 and back, and what every number format answers to.
///
/// A format is a trivial struct around its bits: `bf16`, `fp16`, `e4m3`, `e4m3fnuz`, `e8m0`; float
/// is one too, so templates can be written over element types. Each has
///   `to_float(code)`       the value, exactly (every format here is a subset of f32)
///   `from_float<T>(x)`     the nearest code, ties to even
///   `largest_finite<T>`    the largest value below infinity
///   `dtype_of<T>`          its name at run time
/// The conversions hold no branch and no table: a plain loop over them becomes vector code from
/// x86-64-v2 on, and lanes of a GPU do not part. They assume that f32 additions round to nearest;
/// flushing subnormals to zero does not disturb them.
#pragma once

#include <ferry/base/types.hpp>

#include <cstdint>

namespace ferry {

// The builtin behind std::bit_cast: that one is a host function to nvcc.
FERRY_FN constexpr std::uint32_t bits_of(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
FERRY_FN constexpr float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

inline constexpr std::uint32_t f32_sign = 0x8000'0000u;
inline constexpr std::uint32_t f32_infinity = 0x7F80'0000u;
inline constexpr std::uint32_t f32_nan = 0x7FC0'0000u;

/// The bits of |x|. As integers they order like the magnitudes; NaN lies above infinity.
/// Signed, because vector units compare signed integers only.
FERRY_FN constexpr std::int32_t magnitude_bits(float x) {
  return static_cast<std::int32_t>(bits_of(x) & ~f32_sign);
}

FERRY_FN constexpr bool is_nan(float x) {
  return magnitude_bits(x) > static_cast<std::int32_t>(f32_infinity);
}

/// All ones if a < b, else 0. Neither may be negative. Made by arithmetic: a comparison invites the
/// compiler to guard what depends on it by a branch, which keeps a loop from becoming vector code.
FERRY_FN constexpr std::uint32_t mask_below(std::int32_t a, std::int32_t b) {
  return static_cast<std::uint32_t>((a - b) >> 31);
}
FERRY_FN constexpr std::uint32_t mask_below(std::uint32_t a, std::uint32_t b) {
  return mask_below(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b));
}
FERRY_FN constexpr std::uint32_t mask_equal(std::uint32_t a, std::uint32_t b) {
  return mask_below(a ^ b, 1u);
}
/// All ones if the number with these magnitude_bits() is NaN.
FERRY_FN constexpr std::uint32_t mask_nan(std::int32_t magnitude) {
  return mask_below(static_cast<std::int32_t>(f32_infinity), magnitude);
}

/// `yes` where the mask is all ones, `no` where it is 0.
FERRY_FN constexpr std::uint32_t select(std::uint32_t mask, std::uint32_t yes, std::uint32_t no) {
  return (yes & mask) | (no & ~mask);
}

/// The code of T nearest to x, ties to even. What lies beyond the largest finite value becomes
/// infinity where T has one; the fp8 formats saturate, infinities too. NaN becomes NaN.
template <class T>
FERRY_HOST_DEVICE constexpr T from_float(float x);

template <>
FERRY_FN constexpr float from_float<float>(float x) {
  return x;
}
FERRY_FN constexpr float to_float(float x) {
  return x;
}

template <class T>
inline constexpr float largest_finite = T::largest;
template <>
inline constexpr float largest_finite<float> = 0x1.FFFFFEp127f;

template <class T>
inline constexpr dtype dtype_of = T::type;
template <>
inline constexpr dtype dtype_of<float> = dtype::f32;

}  // namespace ferry
