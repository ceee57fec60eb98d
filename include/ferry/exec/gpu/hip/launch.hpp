// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The runtime calls that a table of kernels needs, for AMD's GPUs.
#if defined(__HIP__)
#pragma once

#include <hip/hip_runtime.h>

namespace ferry {

struct native_runtime {
  static int launch(void const* kernel, int blocks, int threads, void** arguments, void* stream) {
    return hipLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                           dim3(static_cast<unsigned>(threads)), arguments, 0,
                           static_cast<hipStream_t>(stream));
  }
  /// A kernel is loaded before anybody can know this about it.
  static int load(void const* kernel) {
    hipFuncAttributes attributes;
    return hipFuncGetAttributes(&attributes, kernel);
  }
  static int resident_blocks(void const* kernel, int threads, int* blocks) {
    int device = 0, units = 0, per_unit = 0;
    hipError_t status = hipGetDevice(&device);
    if (status == hipSuccess)
      status = hipDeviceGetAttribute(&units, hipDeviceAttributeMultiprocessorCount, device);
    if (status == hipSuccess)
      status = hipOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, kernel, threads, 0);
    *blocks = units * per_unit;
    return status;
  }
  static char const* describe(int status) {
    return hipGetErrorString(static_cast<hipError_t>(status));
  }
};

}  // namespace ferry
#endif
