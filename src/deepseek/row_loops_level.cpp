// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Compiled once per level, with FERRY_CPU_LEVEL naming its tag and
// FERRY_VECTOR_FLOATS the width of its vectors. No function of the standard library
// here: one that is not inlined would leave a symbol that other objects share.

#include "deepseek/row_loops.hpp"

#include <ferry/base/block_scale.hpp>
#include <ferry/exec/cpu/code_level.hpp>

namespace ferry::deepseek {
namespace {

/// Sums run in 16 lanes on every level, whatever the width of its vectors.
constexpr int lanes = 16;
constexpr int parts = lanes / FERRY_VECTOR_FLOATS;
using vector_values = float __attribute__((vector_size(FERRY_VECTOR_FLOATS * sizeof(float))));

struct lane_values {
  vector_values part[parts];
};

// Part by part: a copy of the whole would go through memory.
FERRY_FN lane_values load(float const* from) {
  lane_values v;
  for (int i = 0; i < parts; ++i) {
    __builtin_memcpy(&v.part[i], from + i * FERRY_VECTOR_FLOATS, sizeof(vector_values));
  }
  return v;
}

FERRY_FN void store(lane_values const& v, float* to) {
  for (int i = 0; i < parts; ++i) {
    __builtin_memcpy(to + i * FERRY_VECTOR_FLOATS, &v.part[i], sizeof(vector_values));
  }
}

FERRY_FN lane_values operator+(lane_values a, lane_values const& b) {
  for (int i = 0; i < parts; ++i) a.part[i] += b.part[i];
  return a;
}

FERRY_FN lane_values operator*(lane_values a, lane_values const& b) {
  for (int i = 0; i < parts; ++i) a.part[i] *= b.part[i];
  return a;
}

FERRY_FN lane_values operator*(float a, lane_values b) {
  for (int i = 0; i < parts; ++i) b.part[i] *= a;
  return b;
}

/// The last n < lanes values, then zeros.
FERRY_FN lane_values load_first(float const* from, std::int64_t n) {
  float padded[lanes] = {};
  for (std::int64_t i = 0; i < n; ++i) padded[i] = from[i];
  return load(padded);
}

using vector_of_4 = float __attribute__((vector_size(16)));
using vector_of_8 = float __attribute__((vector_size(32)));

FERRY_FN float sum_of(vector_of_4 v) {
  return (v[0] + v[2]) + (v[1] + v[3]);
}

template <class V>
FERRY_FN float sum_of(V v) {
  if constexpr (sizeof(V) == 64) {
    return sum_of<vector_of_8>(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                               __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
  } else {
    return sum_of(__builtin_shufflevector(v, v, 0, 1, 2, 3) +
                  __builtin_shufflevector(v, v, 4, 5, 6, 7));
  }
}

/// The sum of the lanes, as a tree: halves of 8, of 4, of 2.
FERRY_FN float sum(lane_values v) {
  for (int half = parts / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) v.part[i] += v.part[i + half];
  }
  return sum_of(v.part[0]);
}

FERRY_FN float dot(float const* a, float const* b, std::int64_t n) {
  lane_values total = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) total = total + load(a + i) * load(b + i);
  if (i < n) total = total + load_first(a + i, n - i) * load_first(b + i, n - i);
  return sum(total);
}

/// e^x to about one unit in the last place, without branches, so that loops of it become vector
/// code. NaN stays NaN; beyond f32's range 0 and infinity come out as themselves.
FERRY_FN float exponential(float x) {
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

/// Scores become weights that sum to 1.
FERRY_FN void softmax(float* scores, std::int64_t count) {
  float largest = scores[0];
  for (std::int64_t p = 1; p < count; ++p) largest = scores[p] > largest ? scores[p] : largest;
  for (std::int64_t p = 0; p < count; ++p) scores[p] = exponential(scores[p] - largest);
  lane_values total = {};
  std::int64_t p = 0;
  for (; p + lanes <= count; p += lanes) total = total + load(scores + p);
  if (p < count) total = total + load_first(scores + p, count - p);
  float const inverse = 1.0F / sum(total);
  for (p = 0; p < count; ++p) scores[p] *= inverse;
}

/// to += weights . rows for four rows; the four products are summed first.
FERRY_FN void add_four(float const* weights, float const* rows, int columns, int latent,
                       float* to) {
  float const* r0 = rows;
  float const* r1 = r0 + columns;
  float const* r2 = r1 + columns;
  float const* r3 = r2 + columns;
  int i = 0;
  for (; i + lanes <= latent; i += lanes) {
    lane_values const pair = weights[0] * load(r0 + i) + weights[1] * load(r1 + i);
    lane_values const other = weights[2] * load(r2 + i) + weights[3] * load(r3 + i);
    store(load(to + i) + (pair + other), to + i);
  }
  for (; i < latent; ++i) {
    to[i] += (weights[0] * r0[i] + weights[1] * r1[i]) + (weights[2] * r2[i] + weights[3] * r3[i]);
  }
}

template <class Level>
void attend(attend_input const& in, float* scores, float* out) {
  // Positions outside, heads inside: each cached row is read once for all heads.
  for (std::int64_t p = 0; p < in.count; ++p) {
    float const* row = in.rows + p * in.columns;
    for (int h = 0; h < in.heads; ++h) {
      scores[h * in.count + p] = dot(in.queries + h * in.columns, row, in.columns) * in.scale;
    }
  }
  for (int h = 0; h < in.heads; ++h) softmax(scores + h * in.count, in.count);
  for (std::int64_t i = 0; i < std::int64_t{in.heads} * in.latent; ++i) out[i] = 0;
  std::int64_t p = 0;
  for (; p + 4 <= in.count; p += 4) {
    for (int h = 0; h < in.heads; ++h) {
      add_four(scores + h * in.count + p, in.rows + p * in.columns, in.columns, in.latent,
               out + h * in.latent);
    }
  }
  for (; p < in.count; ++p) {
    float const* row = in.rows + p * in.columns;
    for (int h = 0; h < in.heads; ++h) {
      float const weight = scores[h * in.count + p];
      float* to = out + h * in.latent;
      for (int i = 0; i < in.latent; ++i) to[i] += weight * row[i];
    }
  }
}

/// Row r is written at r * width, which lies at or before what is still to be read; a block of
/// lanes is read before it is written, as row 0 overwrites itself.
template <class Level>
void gate_rows(float* values, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float const* gate = values + row * 2 * width;
    float* to = values + row * width;
    for (std::int64_t first = 0; first < width; first += lanes) {
      std::int64_t const n = width - first < lanes ? width - first : lanes;
      float g[lanes] = {};
      float u[lanes] = {};
      __builtin_memcpy(g, gate + first, static_cast<std::size_t>(n) * sizeof(float));
      __builtin_memcpy(u, gate + width + first, static_cast<std::size_t>(n) * sizeof(float));
      for (int i = 0; i < lanes; ++i) g[i] = g[i] / (1.0F + exponential(-g[i])) * u[i];
      __builtin_memcpy(to + first, g, static_cast<std::size_t>(n) * sizeof(float));
    }
  }
}

template <class Level>
void normalise(float const* from, float const* weight, float epsilon, std::int64_t n, float* to) {
  float const mean = dot(from, from, n) / static_cast<float>(n);
  float const scale = 1.0F / __builtin_sqrtf(mean + epsilon);
  for (std::int64_t i = 0; i < n; ++i) to[i] = from[i] * scale * weight[i];
}

template <class Level>
void add(float const* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}

template <class Level>
void to_bf16(float const* from, std::int64_t n, bf16* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = from_float<bf16>(from[i]);
}

template <class Level>
void through_fp8(float const* from, std::int64_t n, float* to) {
  for (std::int64_t begin = 0; begin < n; begin += scale_block) {
    std::int64_t const end = begin + scale_block < n ? begin + scale_block : n;
    block_range range;
    for (std::int64_t i = begin; i < end; ++i) range.add(from[i]);
    float const scale = block_scale<e4m3>(range);
    for (std::int64_t i = begin; i < end; ++i) {
      to[i] = dequantise(quantise<e4m3>(from[i], scale), scale);
    }
  }
}

template <class T>
FERRY_FN T read(std::byte const* at, std::int64_t index) {
  T value;
  __builtin_memcpy(&value, at + index * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

template <class T>
FERRY_FN void decode_plain(std::byte const* row, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(read<T>(row, i));
}

template <class T, class Scale>
FERRY_FN void decode_blocks(std::byte const* row, std::byte const* scales, std::int64_t n,
                            float* to) {
  for (std::int64_t begin = 0; begin < n; begin += scale_block) {
    float const scale = to_float(read<Scale>(scales, begin / scale_block));
    std::int64_t const end = begin + scale_block < n ? begin + scale_block : n;
    for (std::int64_t i = begin; i < end; ++i) to[i] = dequantise(read<T>(row, i), scale);
  }
}

template <class Level>
void decode(ferry::wire w, std::byte const* row, std::byte const* scales, std::int64_t n,
            float* to) {
  switch (w) {
    case wire::f32: return decode_plain<float>(row, n, to);
    case wire::bf16: return decode_plain<bf16>(row, n, to);
    case wire::fp16: return decode_plain<fp16>(row, n, to);
    case wire::fp8_e4m3: return decode_blocks<e4m3, float>(row, scales, n, to);
    case wire::fp8_e4m3fnuz: return decode_blocks<e4m3fnuz, float>(row, scales, n, to);
    case wire::fp8_ue8m0: return decode_blocks<e4m3, e8m0>(row, scales, n, to);
    case wire::opaque: break;  // refused where experts are made
  }
}

}  // namespace

template <class Level>
row_loops const& row_loops_of();

template <>
row_loops const& row_loops_of<FERRY_CPU_LEVEL>() {
  using level = FERRY_CPU_LEVEL;
  static constexpr row_loops all{attend<level>,  gate_rows<level>,   normalise<level>, add<level>,
                                 to_bf16<level>, through_fp8<level>, decode<level>};
  return all;
}

}  // namespace ferry::deepseek
