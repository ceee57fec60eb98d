// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Tensors that need not be stored: every element follows from the tensor's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::test {

/// A random-access stream of 64-bit numbers (splitmix64), seeded by FNV-1a of "<seed>:<name>".
class name_stream {
 public:
  name_stream(std::string_view seed, std::string_view name) {
    for (char c : std::string(seed) + ':' + std::string(name))
      start_ = (start_ ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  }
  std::uint64_t operator[](std::uint64_t i) const {
    auto z = start_ + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t start_ = 0xCBF29CE484222325u;
};

/// How a number of the stream becomes a value. All values are exact in float; `u8` with a power of
/// two as amplitude and `norm` are exact in bf16 too.
enum class value_form {
  u8,    ///< 256 values, symmetric around 0, below the amplitude
  norm,  ///< 64 values around 1
  u24,   ///< 2^24 values in [-amplitude, amplitude)
};

inline float deterministic_value(std::uint64_t z, value_form form, float amplitude) {
  switch (form) {
    case value_form::u8: return (2.0f * static_cast<float>(z >> 56) - 255.0f) / 256.0f * amplitude;
    case value_form::norm: return 1.0f + (2.0f * static_cast<float>(z >> 58) - 63.0f) / 128.0f;
    case value_form::u24: break;
  }
  return (static_cast<float>(z >> 40) - 8388608.0f) / 8388608.0f * amplitude;
}

/// The first `count` values of a tensor, row-major.
inline std::vector<float> deterministic_tensor(std::string_view seed, std::string_view name,
                                               std::size_t count, value_form form,
                                               float amplitude = 1) {
  name_stream stream(seed, name);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = deterministic_value(stream[i], form, amplitude);
  return values;
}

}  // namespace ferry::test
