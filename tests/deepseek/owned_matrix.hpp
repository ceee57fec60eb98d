// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Matrices for tests, and how far two of them are apart.
#pragma once

#include <ferry/base/matrix.hpp>

#include "deepseek/deterministic_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

namespace ferry::test {

/// Dense rows that own their values.
struct owned_matrix {
  std::vector<float> values;
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  owned_matrix(std::int64_t r, std::int64_t c)
      : values(static_cast<std::size_t>(r * c)), rows(r), columns(c) {}
  owned_matrix(std::string_view name, std::int64_t r, std::int64_t c, float amplitude = 1)
      : values(deterministic_tensor("tests", name, static_cast<std::size_t>(r * c), value_form::u24,
                                    amplitude)),
        rows(r),
        columns(c) {}

  matrix<float const> view() const { return dense<float const>(values.data(), rows, columns); }
  matrix<float> view() { return dense(values.data(), rows, columns); }
  matrix<float const> read() const { return view(); }
  matrix<float const> slice(std::int64_t first, std::int64_t count) const {
    return {view()[first], count, columns, columns};
  }
  float const* operator[](std::int64_t row) const { return values.data() + row * columns; }
};

inline bool same_bits(float const* a, float const* b, std::int64_t n) {
  return std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(float)) == 0;
}

/// The largest |a - b|; infinite where one of them is NaN.
template <class A, class B>
double distance(A const* a, B const* b, std::int64_t n) {
  double largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    double const d = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = std::isnan(d) ? HUGE_VAL : std::max(largest, d);
  }
  return largest;
}

}  // namespace ferry::test
