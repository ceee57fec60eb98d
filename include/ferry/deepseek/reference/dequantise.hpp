// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Turns block-scaled fp8 back into f32: plain and slow.
#pragma once

#include <ferry/base/matrix.hpp>
#include <ferry/base/number_formats.hpp>
#include <ferry/base/types.hpp>
#include <ferry/deepseek/reference/float8.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry::deepseek::reference {

/// One product, one rounding. The product is exact in f64: 4 by 24 bits.
template <class T>
float dequantise_one(T code, float scale) {
  return static_cast<float>(fp8_value(code) * static_cast<double>(scale));
}

/// A row with one scale per 128 columns.
template <class T>
std::vector<float> dequantise_row(std::span<T const> codes, std::span<float const> scales) {
  std::vector<float> out;
  for (std::size_t i = 0; i < codes.size(); ++i)
    out.push_back(dequantise_one(codes[i], scales[i / scale_block]));
  return out;
}

/// The same with power-of-two scales; a NaN scale makes its whole block NaN.
template <class T>
std::vector<float> dequantise_row(std::span<T const> codes, std::span<e8m0 const> scales) {
  std::vector<float> out;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    int const exponent = scales[i / scale_block].bits;
    out.push_back(
        dequantise_one(codes[i], exponent == 255 ? NAN : std::ldexp(1.0f, exponent - 127)));
  }
  return out;
}

/// Weights with one scale per block of 128 x 128; the last blocks may be partial.
/// Shapes   codes [m, n], scales [ceil(m / 128), ceil(n / 128)], the result is dense [m, n]
template <class T>
std::vector<float> dequantise_weights(matrix<T const> codes, matrix<float const> scales) {
  std::vector<float> out;
  for (std::int64_t row = 0; row < codes.rows; ++row)
    for (std::int64_t column = 0; column < codes.columns; ++column)
      out.push_back(
          dequantise_one(codes[row][column], scales[row / scale_block][column / scale_block]));
  return out;
}

}  // namespace ferry::deepseek::reference
