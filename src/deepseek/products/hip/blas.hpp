// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The calls that products are made of, for AMD's GPUs.
#if defined(FERRY_PRODUCTS_HIP)
#pragma once

#include <hipblaslt/hipblaslt.h>

#include <cstdint>

namespace ferry::deepseek {

struct blas {
  static constexpr char const* name = "hipBLASLt";
  using status = hipblasStatus_t;
  using handle = hipblasLtHandle_t;
  using product = hipblasLtMatmulDesc_t;
  using layout = hipblasLtMatrixLayout_t;
  using algorithm = hipblasLtMatmulAlgo_t;
  using element = hipDataType;
  using stream = hipStream_t;

  static constexpr status fine = HIPBLAS_STATUS_SUCCESS;
  static constexpr status not_supported = HIPBLAS_STATUS_NOT_SUPPORTED;
  static constexpr status no_memory = HIPBLAS_STATUS_ALLOC_FAILED;
  static constexpr element f32 = HIP_R_32F;
  static constexpr element bf16 = HIP_R_16BF;

  static status open(handle* h) { return hipblasLtCreate(h); }
  static status close(handle h) { return hipblasLtDestroy(h); }

  /// Sums in f32, of factors that are not rounded any further.
  static status make_product(product* p) {
    return hipblasLtMatmulDescCreate(p, HIPBLAS_COMPUTE_32F, f32);
  }
  static status destroy(product p) { return hipblasLtMatmulDescDestroy(p); }
  static status transpose_first(product p) {
    auto const op = HIPBLAS_OP_T;
    return hipblasLtMatmulDescSetAttribute(p, HIPBLASLT_MATMUL_DESC_TRANSA, &op, sizeof op);
  }

  /// By columns; `next` leads from one matrix of a batch to the next.
  struct matrices {
    std::int64_t rows, columns, stride, count, next;
  };
  static status make_layout(layout* l, element type, matrices const& m) {
    status s = hipblasLtMatrixLayoutCreate(l, type, static_cast<std::uint64_t>(m.rows),
                                           static_cast<std::uint64_t>(m.columns), m.stride);
    auto const count = static_cast<std::int32_t>(m.count);
    if (s == fine)
      s = hipblasLtMatrixLayoutSetAttribute(*l, HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                            sizeof count);
    if (s == fine)
      s = hipblasLtMatrixLayoutSetAttribute(*l, HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                            &m.next, sizeof m.next);
    return s;
  }
  static status destroy(layout l) { return hipblasLtMatrixLayoutDestroy(l); }

  /// The library's first choice among those that need no memory of their own: none of them splits
  /// a sum over blocks that would have to meet there.
  static status choose(algorithm* a, handle h, product p, layout first, layout second, layout sum,
                       int alignment_bytes) {
    hipblasLtMatmulPreference_t asked = {};
    status s = hipblasLtMatmulPreferenceCreate(&asked);
    if (s != fine) return s;
    std::uint64_t const workspace = 0;
    s = hipblasLtMatmulPreferenceSetAttribute(asked, HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &workspace, sizeof workspace);
    if (s == fine) s = align(asked, alignment_bytes);
    hipblasLtMatmulHeuristicResult_t found = {};
    int count = 0;
    if (s == fine)
      s = hipblasLtMatmulAlgoGetHeuristic(h, p, first, second, sum, sum, asked, 1, &found, &count);
    static_cast<void>(hipblasLtMatmulPreferenceDestroy(asked));
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
    return hipblasLtMatmul(h, p, &one, first.at, first.how, second.at, second.how, &none, to, how,
                           to, how, &a, nullptr, 0, on);
  }

 private:
  /// This library asks for the alignment of an element alone.
  static status align(hipblasLtMatmulPreference_t, int) { return fine; }
};

}  // namespace ferry::deepseek
#endif
