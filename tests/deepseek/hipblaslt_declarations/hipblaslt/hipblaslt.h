// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// What src/deepseek/products/hip uses of hipBLASLt, written from its documentation: with it the
/// sources are compiled where that library is not installed. It shows that they are C++, and nothing
/// of the library.
#pragma once

#include <cstddef>
#include <cstdint>

enum hipblasStatus_t {
  HIPBLAS_STATUS_SUCCESS = 0,
  HIPBLAS_STATUS_ALLOC_FAILED = 2,
  HIPBLAS_STATUS_NOT_SUPPORTED = 7
};
enum hipblasComputeType_t { HIPBLAS_COMPUTE_32F = 2 };
enum hipblasOperation_t { HIPBLAS_OP_T = 112 };
enum hipDataType { HIP_R_32F = 0, HIP_R_16BF = 14 };
enum hipblasLtMatmulDescAttributes_t { HIPBLASLT_MATMUL_DESC_TRANSA };
enum hipblasLtMatrixLayoutAttribute_t {
  HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
  HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
};
enum hipblasLtMatmulPreferenceAttributes_t { HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES };

struct hipblasLtMatmulAlgo_t {
  std::uint8_t data[16];
  std::size_t max_workspace_bytes;
};
struct hipblasLtMatmulHeuristicResult_t {
  hipblasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  hipblasStatus_t state;
  float wavesCount;
  int reserved[4];
};
typedef void* hipblasLtHandle_t;
typedef struct hipblasLtMatmulDescOpaque_t* hipblasLtMatmulDesc_t;
typedef struct hipblasLtMatrixLayoutOpaque_t* hipblasLtMatrixLayout_t;
typedef struct hipblasLtMatmulPreferenceOpaque_t* hipblasLtMatmulPreference_t;
typedef struct ihipStream_t* hipStream_t;

extern "C" {
hipblasStatus_t hipblasLtCreate(hipblasLtHandle_t*);
hipblasStatus_t hipblasLtDestroy(hipblasLtHandle_t const);
hipblasStatus_t hipblasLtMatmulDescCreate(hipblasLtMatmulDesc_t*, hipblasComputeType_t,
                                          hipDataType);
hipblasStatus_t hipblasLtMatmulDescDestroy(hipblasLtMatmulDesc_t const);
hipblasStatus_t hipblasLtMatmulDescSetAttribute(hipblasLtMatmulDesc_t,
                                                hipblasLtMatmulDescAttributes_t, void const*,
                                                std::size_t);
hipblasStatus_t hipblasLtMatrixLayoutCreate(hipblasLtMatrixLayout_t*, hipDataType, std::uint64_t,
                                            std::uint64_t, std::int64_t);
hipblasStatus_t hipblasLtMatrixLayoutDestroy(hipblasLtMatrixLayout_t const);
hipblasStatus_t hipblasLtMatrixLayoutSetAttribute(hipblasLtMatrixLayout_t,
                                                  hipblasLtMatrixLayoutAttribute_t, void const*,
                                                  std::size_t);
hipblasStatus_t hipblasLtMatmulPreferenceCreate(hipblasLtMatmulPreference_t*);
hipblasStatus_t hipblasLtMatmulPreferenceDestroy(hipblasLtMatmulPreference_t const);
hipblasStatus_t hipblasLtMatmulPreferenceSetAttribute(hipblasLtMatmulPreference_t,
                                                      hipblasLtMatmulPreferenceAttributes_t,
                                                      void const*, std::size_t);
hipblasStatus_t hipblasLtMatmulAlgoGetHeuristic(hipblasLtHandle_t, hipblasLtMatmulDesc_t,
                                                hipblasLtMatrixLayout_t, hipblasLtMatrixLayout_t,
                                                hipblasLtMatrixLayout_t, hipblasLtMatrixLayout_t,
                                                hipblasLtMatmulPreference_t, int,
                                                hipblasLtMatmulHeuristicResult_t[], int*);
hipblasStatus_t hipblasLtMatmul(hipblasLtHandle_t, hipblasLtMatmulDesc_t, void const*, void const*,
                                hipblasLtMatrixLayout_t, void const*, hipblasLtMatrixLayout_t,
                                void const*, void const*, hipblasLtMatrixLayout_t, void*,
                                hipblasLtMatrixLayout_t, hipblasLtMatmulAlgo_t const*, void*,
                                std::size_t, hipStream_t);
}
