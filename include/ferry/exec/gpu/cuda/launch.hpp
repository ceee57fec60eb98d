// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The runtime calls that a table of kernels needs, for NVIDIA's GPUs.
#if defined(__CUDACC__)
#pragma once

#include <cuda_runtime.h>

namespace ferry {

struct native_runtime {
  static int launch(void const* kernel, int blocks, int threads, void** arguments, void* stream) {
    return cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                            dim3(static_cast<unsigned>(threads)), arguments, 0,
                            static_cast<cudaStream_t>(stream));
  }
  /// A kernel is loaded before anybody can know this about it.
  static int load(void const* kernel) {
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, kernel);
  }
  static int resident_blocks(void const* kernel, int threads, int* blocks) {
    int device = 0, units = 0, per_unit = 0;
    cudaError_t status = cudaGetDevice(&device);
    if (status == cudaSuccess)
      status = cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device);
    if (status == cudaSuccess)
      status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, kernel, threads, 0);
    *blocks = units * per_unit;
    return status;
  }
  static char const* describe(int status) {
    return cudaGetErrorString(static_cast<cudaError_t>(status));
  }
};

}  // namespace ferry
#endif
