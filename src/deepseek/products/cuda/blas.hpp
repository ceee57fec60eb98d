// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The calls that products are made of, for NVIDIA's GPUs.
#if defined(FERRY_PRODUCTS_CUDA)
#pragma once

#include <cublasLt.h>

#include <cstdint>

namespace ferry::deepseek {

struct blas {
  static constexpr char const* name = "cuBLASLt";
  using status = cublasStatus_t;
  using handle = cublasLtHandle_t;
  using product = cublasLtMatmulDesc_t;
  using layout = cublasLtMatrixLayout_t;
  using algorithm = cublasLtMatmulAlgo_t;
  using element = cudaDataType_t;
  using stream = cudaStream_t;

  static constexpr status fine = CUBLAS_STATUS_SUCCESS;
  static constexpr status not_supported = CUBLAS_STATUS_NOT_SUPPORTED;
  static constexpr status no_memory = CUBLAS_STATUS_ALLOC_FAILED;
  static constexpr element f32 = CUDA_R_32F;
  static constexpr element bf16 = CUDA_R_16BF;

  static status open(handle* h) { return cublasLtCreate(h); }
  static status close(handle h) { return cublasLtDestroy(h); }

  /// Sums in f32, of factors that are not rounded any further.
  static status make_product(product* p) {
    return cublasLtMatmulDescCreate(p, CUBLAS_COMPUTE_32F, f32);
  }
  static status destroy(product p) { return cublasLtMatmulDescDestroy(p); }
  static status transpose_first(product p) {
    auto const op = CUBLAS_OP_T;
    return cublasLtMatmulDescSetAttribute(p, CUBLASLT_MATMUL_DESC_TRANSA, &op, sizeof op);
  }

  /// By columns; `next` leads from one matrix of a batch to the next.
  struct matrices {
    std::int64_t rows, columns, stride, count, next;
  };
  static status make_layout(layout* l, element type, matrices const& m) {
    status s = cublasLtMatrixLayoutCreate(l, type, static_cast<std::uint64_t>(m.rows),
                                          static_cast<std::uint64_t>(m.columns), m.stride);
    auto const count = static_cast<std::int32_t>(m.count);
    if (s == fine)
      s = cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                           sizeof count);
    if (s == fine)
      s = cublasLtMatrixLayoutSetAttribute(*l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.next,
                                           sizeof m.next);
    return s;
  }
  static status destroy(layout l) { return cublasLtMatrixLayoutDestroy(l); }

  /// The library's first choice among those that need no memory of their own: none of them splits
  /// a sum over blocks that would have to meet there.
  static status choose(algorithm* a, handle h, product p, layout first, layout second, layout sum,
                       int alignment_bytes) {
    cublasLtMatmulPreference_t asked = {};
    status s = cublasLtMatmulPreferenceCreate(&asked);
    if (s != fine) return s;
    std::uint64_t const workspace = 0;
    s = cublasLtMatmulPreferenceSetAttribute(asked, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace, sizeof workspace);
    if (s == fine) s = align(asked, alignment_bytes);
    cublasLtMatmulHeuristicResult_t found = {};
    int count = 0;
    if (s == fine)
      s = cublasLtMatmulAlgoGetHeuristic(h, p, first, second, sum, sum, asked, 1, &found, &count);
    static_cast<void>(cublasLtMatmulPreferenceDestroy(asked));
    if (s == fine && (count < 1 || found.state != fine)) s = not_supported;
    *a = found.algo;
    return s;
  }

  struct factor {
    void const* at;
    layout how;
  };
  static status multiply(handle h, product p, factor const& first, factor const& second, float* to,
                         layout how, algorithm const& a, stream on) {
    float const one = 1, none = 0;
    return cublasLtMatmul(h, p, &one, first.at, first.how, second.at, second.how, &none, to, how,
                          to, how, &a, nullptr, 0, on);
  }

 private:
  static status align(cublasLtMatmulPreference_t asked, int bytes) {
    auto const least = static_cast<std::uint32_t>(bytes);
    status s = fine;
    for (auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      if (s == fine) s = cublasLtMatmulPreferenceSetAttribute(asked, which, &least, sizeof least);
    return s;
  }
};

}  // namespace ferry::deepseek
#endif
