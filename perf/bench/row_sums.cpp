// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "row_sums.hpp"

#include <ferry/base/number_formats.hpp>

namespace ferry::bench {
namespace {

/// Columns that are summed at a time: they stay in registers and the first cache.
constexpr int tile = 256;

template <class T>
FERRY_FN void sum(std::byte* to, int columns, weighted_rows const& from) {
  int first = 0;
  for (; first + tile <= columns; first += tile) {
    float sums[tile] = {};
    for (int r = 0; r < from.count; ++r) {
      T const* const row = reinterpret_cast<T const*>(from.rows[r]) + first;
      for (int i = 0; i < tile; ++i)
        sums[i] = __builtin_fmaf(from.weights[r], to_float(row[i]), sums[i]);
    }
    T* const out = reinterpret_cast<T*>(to) + first;
    for (int i = 0; i < tile; ++i) out[i] = from_float<T>(sums[i]);
  }
  for (; first < columns; ++first) {
    float one = 0;
    for (int r = 0; r < from.count; ++r)
      one = __builtin_fmaf(from.weights[r],
                           to_float(reinterpret_cast<T const*>(from.rows[r])[first]), one);
    reinterpret_cast<T*>(to)[first] = from_float<T>(one);
  }
}

#if defined(__x86_64__)
#define FERRY_BEST_LEVEL \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define FERRY_BEST_LEVEL
#endif

FERRY_BEST_LEVEL void sum_f32(std::byte* to, int columns, weighted_rows const& from) {
  sum<float>(to, columns, from);
}
FERRY_BEST_LEVEL void sum_bf16(std::byte* to, int columns, weighted_rows const& from) {
  sum<bf16>(to, columns, from);
}
FERRY_BEST_LEVEL void sum_fp16(std::byte* to, int columns, weighted_rows const& from) {
  sum<fp16>(to, columns, from);
}

}  // namespace

void sum_rows(std::byte* to, dtype type, int columns, weighted_rows const& from) {
  switch (type) {
    case dtype::f32: return sum_f32(to, columns, from);
    case dtype::bf16: return sum_bf16(to, columns, from);
    default: return sum_fp16(to, columns, from);
  }
}

}  // namespace ferry::bench
