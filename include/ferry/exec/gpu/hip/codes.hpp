// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// fp8 codes by instructions, where the target has them: FNUZ on gfx942, OCP on gfx950.
#if defined(__HIP__)
#pragma once

#include <ferry/base/float8_codes.hpp>

#include <hip/hip_runtime.h>

#include <cstdint>

namespace ferry {

/// As software_codes, bit for bit.
struct native_codes {
  template <class T>
  __device__ static std::uint32_t of(float a, float b, float c, float d) {
    if constexpr (FERRY_CONVERTS_TO_FNUZ && T::type == dtype::e4m3fnuz)
      return converted(clamped<T>(a), clamped<T>(b), clamped<T>(c), clamped<T>(d));
    else if constexpr (FERRY_CONVERTS_TO_OCP && T::type == dtype::e4m3)
      // A NaN loses its sign in the conversion; every other code has its own already.
      return converted(clamped<T>(a), clamped<T>(b), clamped<T>(c), clamped<T>(d)) |
             signs(a, b, c, d);
    else
      return software_codes::of<T>(a, b, c, d);
  }

  __device__ static std::uint32_t power(float a, float b, float c, float d) {
    if constexpr (FERRY_CONVERTS_TO_FNUZ)
      // A code means half as much in FNUZ, so half of the number has the code that OCP gives it;
      // beyond OCP's largest both stop at 0x7E. FNUZ has no negative zero to be taken out.
      return converted(halved(a), halved(b), halved(c), halved(d));
    else if constexpr (FERRY_CONVERTS_TO_OCP)
      return software_codes::without_negative_zero(
          converted(clamped<e4m3>(a), clamped<e4m3>(b), clamped<e4m3>(c), clamped<e4m3>(d)));
    else
      return software_codes::power(a, b, c, d);
  }

 private:
  // Saturates; NaN stays NaN.
  template <class T>
  __device__ static float clamped(float x) {
    return x == x ? __builtin_amdgcn_fmed3f(x, T::largest, -T::largest) : x;
  }
  __device__ static float halved(float x) {
    return __builtin_amdgcn_fmed3f(x * 0.5f, e4m3::largest / 2, -e4m3::largest / 2);
  }
  __device__ static std::uint32_t converted(float a, float b, float c, float d) {
    int const low = __builtin_amdgcn_cvt_pk_fp8_f32(a, b, 0, false);
    return static_cast<std::uint32_t>(__builtin_amdgcn_cvt_pk_fp8_f32(c, d, low, true));
  }
  __device__ static std::uint32_t signs(float a, float b, float c, float d) {
    return (bits_of(a) & f32_sign) >> 24 | (bits_of(b) & f32_sign) >> 16 |
           (bits_of(c) & f32_sign) >> 8 | (bits_of(d) & f32_sign);
  }
};

}  // namespace ferry
#endif
