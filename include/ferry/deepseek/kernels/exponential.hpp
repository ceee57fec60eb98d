// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// e^x of f32, the same on every device.
#pragma once

#include <ferry/base/float_bits.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// e^x to about one unit in the last place, without branches, so that loops of it become vector
/// code. NaN stays NaN; beyond f32's range 0 and infinity come out as themselves.
FERRY_FN constexpr float exponential(float x) {
  x = x > 89.0F ? 89.0F : x;
  x = x < -104.0F ? -104.0F : x;
  constexpr float round = 0x1.8p23F;  // adding it leaves the nearest integer in the low bits
  float const shifted = x * 0x1.715476p0F + round;
  float const n = shifted - round;
  float const r = (x - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;  // x - n ln 2, in two parts
  float p = 0x1.a0d2cep-13F;
  p = p * r + 0x1.6e879cp-10F;
  p = p * r + 0x1.1112dep-7F;
  p = p * r + 0x1.555502p-5F;
  p = p * r + 0x1.555554p-3F;
  p = p * r + 0.5F;
  p = p * (r * r) + r + 1.0F;
  // 2^n in two factors: n runs from -150 to 128.
  auto const whole = static_cast<std::int32_t>(bits_of(shifted) - bits_of(round));
  std::int32_t const half = whole >> 1;
  float const first = float_of(static_cast<std::uint32_t>(half + 127) << 23);
  float const second = float_of(static_cast<std::uint32_t>(whole - half + 127) << 23);
  return p * first * second;
}

}  // namespace ferry::deepseek
