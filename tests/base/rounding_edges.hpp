// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Holds a format's rounding to its definition at every edge between two neighbouring codes.
#pragma once

#include <ferry/base/number_formats.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace ferry {

/// For each pair of codes c, c + 1 up to `last`: the midpoint goes to the even one, the f32 numbers
/// beside it to the nearer one, on both sides of zero. Every midpoint of T must be an f32.
template <class T>
void rounds_to_nearest_even_up_to(std::uint32_t last) {
  using bits_t = decltype(T::bits);
  constexpr std::uint32_t sign = 1u << (8 * sizeof(T) - 1);
  auto const code_of = [](float x) { return static_cast<std::uint32_t>(from_float<T>(x).bits); };
  for (std::uint32_t code = 0; code < last; ++code) {
    double const low = to_float(T{static_cast<bits_t>(code)});
    double const high = to_float(T{static_cast<bits_t>(code + 1)});
    float const middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(static_cast<double>(middle), (low + high) / 2) << "code " << code;
    std::uint32_t const even = code % 2 ? code + 1 : code;
    ASSERT_EQ(code_of(middle), even) << "code " << code;
    ASSERT_EQ(code_of(std::nextafter(middle, 0.0f)), code) << "code " << code;
    ASSERT_EQ(code_of(std::nextafter(middle, INFINITY)), code + 1) << "code " << code;
    if (to_float(T{static_cast<bits_t>(even)}) == 0) continue;  // FNUZ has no -0
    ASSERT_EQ(code_of(-middle), sign | even) << "code " << code;
    ASSERT_EQ(code_of(-std::nextafter(middle, INFINITY)), sign | (code + 1)) << "code " << code;
  }
}

}  // namespace ferry
