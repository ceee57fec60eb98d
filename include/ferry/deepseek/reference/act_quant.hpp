// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Quantises activations to fp8 with one scale per row and 128 columns: plain and slow.
#pragma once

#include <ferry/base/number_formats.hpp>
#include <ferry/base/types.hpp>
#include <ferry/deepseek/reference/float8.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ferry::deepseek::reference {

/// A row in fp8. `codes` has as many elements as the row, `scales` one for each block of
/// `scale_block` columns; the last block may be shorter.
template <class T, class Scale = float>
struct quantised_row {
  std::vector<T> codes;
  std::vector<Scale> scales;
};

/// What a block's scale may be: any f32, or the next power of two.
enum class scale_rule { any, power_of_two };

/// The largest finite |x| of a block, at least 1e-4.
inline float amax_of(std::span<float const> block) {
  float amax = 1e-4f;
  for (float x : block)
    if (std::isfinite(x)) amax = std::fmax(amax, std::fabs(x));
  return amax;
}

/// The smallest power of two not below a positive x.
inline float next_power_of_two(float x) {
  int exponent = 0;
  float const fraction = std::frexp(x, &exponent);  // in [0.5, 1)
  return std::ldexp(1.0f, fraction == 0.5f ? exponent - 1 : exponent);
}

/// code = nearest(x / scale), scale = amax / (448 or 240), both in f32.
/// NaN becomes the NaN code and does not count in amax; an infinity becomes the largest code and
/// does not count either.
template <class T>
quantised_row<T> act_quant(std::span<float const> row, scale_rule rule = scale_rule::any) {
  quantised_row<T> out;
  for (std::size_t first = 0; first < row.size(); first += scale_block) {
    auto const block = row.subspan(first, std::min<std::size_t>(scale_block, row.size() - first));
    float scale = amax_of(block) / static_cast<float>(flavour_of<T>.largest);
    if (rule == scale_rule::power_of_two) scale = next_power_of_two(scale);
    out.scales.push_back(scale);
    for (float x : block) {
      float const quotient = x / scale;
      out.codes.push_back(fp8_code<T>(quotient));
    }
  }
  return out;
}

/// Codes that serve both flavours: OCP codes under a power-of-two scale, each of which means half
/// as much in FNUZ. -0 becomes 0. A block with a NaN has the scale NaN and codes 0.
/// `scales` are those of an OCP receiver; a FNUZ receiver's are the doubled ones.
inline quantised_row<e4m3, e8m0> act_quant_for_both_flavours(std::span<float const> row) {
  auto const plain = act_quant<e4m3>(row, scale_rule::power_of_two);
  quantised_row<e4m3, e8m0> out{plain.codes, {}};
  for (float scale : plain.scales)
    out.scales.push_back({static_cast<std::uint8_t>(127 + std::ilogb(scale))});
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (out.codes[i].bits == 0x80) out.codes[i].bits = 0;
    if (std::isnan(row[i])) out.scales[i / scale_block].bits = 0xFF;
  }
  for (std::size_t i = 0; i < row.size(); ++i)
    if (out.scales[i / scale_block].bits == 0xFF) out.codes[i].bits = 0;
  return out;
}

}  // namespace ferry::deepseek::reference
