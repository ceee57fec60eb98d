// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A strip in the vectors of one CPU thread.
#pragma once

#include <ferry/base/number_formats.hpp>
#include <ferry/exec/strip.hpp>

#include <cstdint>

namespace ferry {

namespace cpu_vectors {

using of_4 = float __attribute__((vector_size(16)));
using of_8 = float __attribute__((vector_size(32)));
using of_16 = float __attribute__((vector_size(64)));

// Spelled out: compilers forget a vector's size that depends on a template argument.
template <int Floats>
struct of;
template <>
struct of<4> {
  using type = of_4;
};
template <>
struct of<8> {
  using type = of_8;
};
template <>
struct of<16> {
  using type = of_16;
};

/// A vector as four sums: halves of 8, then of 4.
FERRY_FN of_4 quarter(of_4 v) {
  return v;
}
FERRY_FN of_4 quarter(of_8 v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
}
FERRY_FN of_4 quarter(of_16 v) {
  return quarter(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                 __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
}

}  // namespace cpu_vectors

/// The only strip of a launch. `Level` (code_level.hpp) keeps the levels' instantiations apart;
/// `Floats` is the width of its vectors: 4, 8 or 16.
template <class Level, int Floats>
class cpu_strip {
 public:
  static constexpr int lanes = strip_lanes;
  static constexpr std::int64_t columns_at_once = 0;
  static constexpr std::int64_t sums_held = 4;
  static constexpr int parts = lanes / Floats;
  static_assert(parts * Floats == lanes);

  using vector = typename cpu_vectors::of<Floats>::type;
  using vector_of_4 = cpu_vectors::of_4;

  /// Part by part everywhere: a copy of the whole would go through memory.
  struct values {
    vector part[parts];

    friend FERRY_FN values operator+(values a, values const& b) {
      for (int i = 0; i < parts; ++i) a.part[i] += b.part[i];
      return a;
    }
    friend FERRY_FN values operator*(values a, values const& b) {
      for (int i = 0; i < parts; ++i) a.part[i] *= b.part[i];
      return a;
    }
    friend FERRY_FN values operator*(float a, values b) {
      for (int i = 0; i < parts; ++i) b.part[i] *= a;
      return b;
    }
  };
  struct four {
    vector_of_4 v;
    friend FERRY_FN four operator*(four const& a, float b) { return {a.v * b}; }
  };

  FERRY_FN constexpr std::int64_t index() const { return 0; }
  FERRY_FN constexpr std::int64_t count() const { return 1; }
  FERRY_FN constexpr bool leader() const { return true; }

  FERRY_FN values load(float const* from) const {
    values v;
    for (int i = 0; i < parts; ++i) {
      __builtin_memcpy(&v.part[i], from + i * Floats, sizeof(vector));
    }
    return v;
  }
  template <class T>
  FERRY_FN values load(T const* from) const {
    float each[lanes];
    for (int i = 0; i < lanes; ++i) each[i] = to_float(from[i]);
    return load(each);
  }
  template <class T>
  FERRY_FN values load_first(T const* from, std::int64_t n, float rest) const {
    float each[lanes];
    for (float& x : each) x = rest;
    for (std::int64_t i = 0; i < n; ++i) each[i] = to_float(from[i]);
    return load(each);
  }
  FERRY_FN void store(values const& v, float* to) const {
    for (int i = 0; i < parts; ++i) {
      __builtin_memcpy(to + i * Floats, &v.part[i], sizeof(vector));
    }
  }
  FERRY_FN values fill(float x) const {
    values v;
    for (int i = 0; i < parts; ++i) v.part[i] = vector{} + x;
    return v;
  }

  FERRY_FN float sum(values const& v) const {
    vector_of_4 const q = quarter(v);
    return (q[0] + q[2]) + (q[1] + q[3]);
  }
  FERRY_FN four sum_four(values const& a, values const& b, values const& c, values const& d) const {
    vector_of_4 const qa = quarter(a);
    vector_of_4 const qb = quarter(b);
    vector_of_4 const qc = quarter(c);
    vector_of_4 const qd = quarter(d);
    vector_of_4 const low =
        __builtin_shufflevector(qa, qb, 0, 1, 4, 5) + __builtin_shufflevector(qa, qb, 2, 3, 6, 7);
    vector_of_4 const high =
        __builtin_shufflevector(qc, qd, 0, 1, 4, 5) + __builtin_shufflevector(qc, qd, 2, 3, 6, 7);
    return {__builtin_shufflevector(low, high, 0, 2, 4, 6) +
            __builtin_shufflevector(low, high, 1, 3, 5, 7)};
  }
  FERRY_FN void store_four(four const& f, float* to) const {
    __builtin_memcpy(to, &f.v, sizeof f.v);
  }
  FERRY_FN values larger(values const& a, values b) const {
    for (int i = 0; i < parts; ++i) b.part[i] = a.part[i] > b.part[i] ? a.part[i] : b.part[i];
    return b;
  }
  FERRY_FN values multiply_add(values const& a, values const& b, values c) const {
    for (int i = 0; i < parts; ++i) {
      for (int j = 0; j < Floats; ++j) {
        c.part[i][j] = __builtin_fmaf(a.part[i][j], b.part[i][j], c.part[i][j]);
      }
    }
    return c;
  }
  FERRY_FN float largest(values const& v) const {
    float each[lanes];
    store(v, each);
    float most = each[0];
    for (float x : each) most = x > most || most != most ? x : most;
    return most;
  }
  FERRY_FN int first_equal(values const& v, float x) const {
    float each[lanes];
    store(v, each);
    int first = lanes;
    for (int i = lanes - 1; i >= 0; --i) first = each[i] == x ? i : first;
    return first;
  }
  FERRY_FN float at_lane(values const& v, int lane) const {
    float each[lanes];
    store(v, each);
    return each[lane];
  }
  template <class F, class... Values>
  FERRY_FN values map(F const& f, Values const&... v) const {
    return map_arrays(f, as_array(v)...);
  }
  template <class F>
  FERRY_FN void for_each(std::int64_t n, F const& f) const {
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
  template <class T, class F>
  FERRY_FN T merge(T value, F const&) const {
    return value;
  }
  FERRY_FN void sync() const {}

 private:
  struct array {
    float each[lanes];
  };
  FERRY_FN array as_array(values const& v) const {
    array a;
    store(v, a.each);
    return a;
  }
  template <class F, class... Arrays>
  FERRY_FN values map_arrays(F const& f, Arrays const&... from) const {
    float to[lanes];
    for (int i = 0; i < lanes; ++i) to[i] = f(from.each[i]...);
    return load(to);
  }

  /// The lanes as four sums: halves of 8, then of 4.
  FERRY_FN static vector_of_4 quarter(values v) {
    for (int half = parts / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) v.part[i] += v.part[i + half];
    }
    return cpu_vectors::quarter(v.part[0]);
  }
};

static_assert(strip<cpu_strip<void, 4>>);

}  // namespace ferry
