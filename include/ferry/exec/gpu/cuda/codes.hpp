// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// fp8 codes by instructions, where the target has them: OCP from sm_89 on.
#if defined(__CUDACC__)
#pragma once

#include <ferry/base/float8_codes.hpp>

#include <cstdint>

namespace ferry {

/// As software_codes, bit for bit.
struct native_codes {
  template <class T>
  __device__ static std::uint32_t of(float a, float b, float c, float d) {
    if constexpr (FERRY_CONVERTS_TO_OCP && T::type == dtype::e4m3)
      // A NaN loses its sign in the conversion; every other code has its own already.
      return converted(a, b, c, d) | signs(a, b, c, d);
    else
      return software_codes::of<T>(a, b, c, d);
  }

  __device__ static std::uint32_t power(float a, float b, float c, float d) {
    if constexpr (FERRY_CONVERTS_TO_OCP)
      return software_codes::without_negative_zero(converted(a, b, c, d));
    else
      return software_codes::power(a, b, c, d);
  }

 private:
  __device__ static std::uint32_t converted(float a, float b, float c, float d) {
    std::uint16_t low = 0, high = 0;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(low) : "f"(b), "f"(a));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(high) : "f"(d), "f"(c));
    return low | static_cast<std::uint32_t>(high) << 16;
  }
  __device__ static std::uint32_t signs(float a, float b, float c, float d) {
    return (bits_of(a) & f32_sign) >> 24 | (bits_of(b) & f32_sign) >> 16 |
           (bits_of(c) & f32_sign) >> 8 | (bits_of(d) & f32_sign);
  }
};

}  // namespace ferry
#endif
