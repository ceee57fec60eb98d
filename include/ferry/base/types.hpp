// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Element types of tensors, and formats of rows in flight.
#pragma once

#include <ferry/base/platform.hpp>

#include <cstddef>
#include <cstdint>

namespace ferry {

/// The type of a tensor's elements.
enum class dtype : std::uint8_t { f32, bf16, fp16, e4m3, e4m3fnuz, e8m0, byte };

/// How a row travels. The fp8 kinds carry one scale per block of 128 columns (the last block may be
/// shorter): f32 for the first two; for `fp8_ue8m0` a power of two in one byte, with codes that
/// mean the same in both flavours but for a factor of two (the receiver's scale takes it).
/// `opaque`: rows and scales of any byte length that the caller made; ferry only carries them.
enum class wire : std::uint8_t { f32, bf16, fp16, fp8_e4m3, fp8_e4m3fnuz, fp8_ue8m0, opaque };

/// Columns that share one fp8 scale.
inline constexpr int scale_block = 128;

FERRY_FN constexpr std::size_t bytes_of(dtype type) {
  switch (type) {
    case dtype::f32: return 4;
    case dtype::bf16:
    case dtype::fp16: return 2;
    default: return 1;
  }
}

FERRY_FN constexpr bool is_fp8(wire w) {
  return w == wire::fp8_e4m3 || w == wire::fp8_e4m3fnuz || w == wire::fp8_ue8m0;
}

/// The element type that a row has in flight; opaque rows are bytes.
FERRY_FN constexpr dtype element_of(wire w) {
  switch (w) {
    case wire::f32: return dtype::f32;
    case wire::bf16: return dtype::bf16;
    case wire::fp16: return dtype::fp16;
    case wire::fp8_e4m3:
    case wire::fp8_ue8m0: return dtype::e4m3;
    case wire::fp8_e4m3fnuz: return dtype::e4m3fnuz;
    default: return dtype::byte;
  }
}

template <class I>
FERRY_FN constexpr I ceil_div(I a, I b) {
  return (a + b - 1) / b;
}
template <class I>
FERRY_FN constexpr I round_up(I a, I b) {
  return ceil_div(a, b) * b;
}

/// Names as options and messages spell them ("f32", "fp8_e4m3", ...).
char const* to_string(dtype type);
char const* to_string(wire w);

}  // namespace ferry
