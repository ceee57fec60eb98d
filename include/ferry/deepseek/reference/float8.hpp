// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The fp8 formats by their definition: fields, double arithmetic, one element at a time.
/// Shares nothing with base/float8.hpp but the structs that hold the bits: it is what that is
/// tested against.
#pragma once

#include <ferry/base/number_formats.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

namespace ferry::deepseek::reference {

/// What tells the two flavours of E4M3 apart.
struct fp8_flavour {
  int bias;
  double largest;
  bool fnuz;  // NaN is 0x80 alone, and there is no -0
};
template <class T>
inline constexpr fp8_flavour flavour_of = fp8_flavour{7, 448.0, false};
template <>
inline constexpr fp8_flavour flavour_of<e4m3fnuz> = fp8_flavour{8, 240.0, true};

/// The value that a code stands for.
template <class T>
double fp8_value(T code) {
  constexpr fp8_flavour flavour = flavour_of<T>;
  bool const negative = code.bits >> 7;
  int const exponent = code.bits >> 3 & 15;
  int const mantissa = code.bits & 7;
  if (flavour.fnuz ? code.bits == 0x80 : (code.bits & 0x7F) == 0x7F)
    return std::numeric_limits<double>::quiet_NaN();
  double const magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - flavour.bias - 3)
                                         : std::ldexp(8 + mantissa, exponent - flavour.bias - 3);
  return negative ? -magnitude : magnitude;
}

/// The code nearest to x, ties to even; what lies beyond the largest value becomes that one.
template <class T>
T fp8_code(double x) {
  constexpr fp8_flavour flavour = flavour_of<T>;
  int const sign = std::signbit(x) ? 0x80 : 0;
  if (std::isnan(x)) return {static_cast<std::uint8_t>(flavour.fnuz ? 0x80 : sign | 0x7F)};
  double const magnitude = std::fmin(std::fabs(x), flavour.largest);
  int const lowest = 1 - flavour.bias;  // exponent of the smallest normal number
  int const exponent =
      magnitude == 0 ? lowest : std::fmax(std::ilogb(magnitude), static_cast<double>(lowest));
  // In steps of the last bit; 8 of them is the hidden bit, so a carry moves to the next exponent.
  int const steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 3 - exponent)));
  int const code = ((exponent - lowest) << 3) + steps;
  return {static_cast<std::uint8_t>(flavour.fnuz && code == 0 ? 0 : sign | code)};
}

}  // namespace ferry::deepseek::reference
