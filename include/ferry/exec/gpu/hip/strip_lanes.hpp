// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The instructions that lane_strip is made of, for AMD's GPUs: a wavefront holds four strips, each
/// a row of 16 lanes.
#if defined(__HIP__)
#pragma once

#include <ferry/exec/lane_strip.hpp>

#include <hip/hip_runtime.h>

#include <cstdint>

namespace ferry {

struct native_strip_lanes {
  static constexpr int team = 64;  ///< lanes of a team

  __device__ int lane() const { return static_cast<int>(threadIdx.x) % strip_lanes; }
  __device__ std::int64_t index() const {
    return (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / strip_lanes;
  }
  __device__ std::int64_t count() const {
    return std::int64_t{gridDim.x} * blockDim.x / strip_lanes;
  }
  /// A turn within a row of 16 lanes: other rows may be elsewhere.
  template <int N, class T>
  __device__ T from_further(T value) const {
    static_assert(sizeof value == 4 && (N == 8 || N == 4 || N == 2 || N == 1));
    constexpr int turn_right = 0x120;  // row_ror: lane i gets the value of lane i - n
    return __builtin_bit_cast(
        T, __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, value),
                                       turn_right + strip_lanes - N, 0xF, 0xF, true));
  }
  __device__ void sync() const {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
  }
};

}  // namespace ferry
#endif
