// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The instructions that lane_strip is made of, for NVIDIA's GPUs: a warp holds two strips.
#if defined(__CUDACC__)
#pragma once

#include <ferry/exec/lane_strip.hpp>

#include <cstdint>

namespace ferry {

struct native_strip_lanes {
  static constexpr int team = 32;  ///< lanes of a team

  __device__ int lane() const { return static_cast<int>(threadIdx.x) % strip_lanes; }
  __device__ std::int64_t index() const {
    return (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / strip_lanes;
  }
  __device__ std::int64_t count() const {
    return std::int64_t{gridDim.x} * blockDim.x / strip_lanes;
  }
  /// Only this strip's half of the warp takes part: the other may be elsewhere.
  template <int N, class T>
  __device__ T from_further(T value) const {
    static_assert(sizeof value == 4 && (N == 8 || N == 4 || N == 2 || N == 1));
    return __shfl_sync(half(), value, lane() + N, strip_lanes);
  }
  __device__ void sync() const { __syncwarp(half()); }

 private:
  __device__ static std::uint32_t half() {
    return 0xFFFFu << (threadIdx.x % team / strip_lanes * strip_lanes);
  }
};

}  // namespace ferry
#endif
