// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// A strip of 16 lanes with one value each: a GPU's, or an emulated one.
#pragma once

#include <ferry/base/number_formats.hpp>
#include <ferry/exec/strip.hpp>

#include <concepts>
#include <cstdint>

namespace ferry {

/// What a lane of a device says about its strip.
///   lane()             0 .. 15
///   index() count()    this strip's number within the launch; strips of the launch
///   from_further<N>(v) the value of the lane N further on, round the strip; v of 4 bytes, N one of
///                      8, 4, 2, 1. All lanes of the strip call it.
///   sync()             orders memory among the strip's lanes
template <class Lanes>
concept lanes_of_strip = requires(Lanes const& l, float x, std::int32_t i) {
  { l.lane() } -> std::same_as<int>;
  { l.index() } -> std::same_as<std::int64_t>;
  { l.count() } -> std::same_as<std::int64_t>;
  { l.template from_further<8>(x) } -> std::same_as<float>;
  { l.template from_further<1>(i) } -> std::same_as<std::int32_t>;
  l.sync();
};

template <lanes_of_strip Lanes>
class lane_strip {
 public:
  static constexpr int lanes = strip_lanes;
  static constexpr std::int64_t columns_at_once = 512;
  static constexpr std::int64_t sums_held = std::int64_t{1} << 40;

  struct values {
    float v;

    friend FERRY_FN values operator+(values a, values b) { return {a.v + b.v}; }
    friend FERRY_FN values operator*(values a, values b) { return {a.v * b.v}; }
    friend FERRY_FN values operator*(float a, values b) { return {b.v * a}; }
  };
  struct four {
    float v[4];
    friend FERRY_FN four operator*(four const& a, float b) {
      return {{a.v[0] * b, a.v[1] * b, a.v[2] * b, a.v[3] * b}};
    }
  };

  FERRY_FN explicit lane_strip(Lanes const& lanes) : lanes_(lanes) {}

  FERRY_FN std::int64_t index() const { return lanes_.index(); }
  FERRY_FN std::int64_t count() const { return lanes_.count(); }
  FERRY_FN bool leader() const { return lanes_.lane() == 0; }

  template <class T>
  FERRY_FN values load(T const* from) const {
    return {to_float(from[lanes_.lane()])};
  }
  template <class T>
  FERRY_FN values load_first(T const* from, std::int64_t n, float rest) const {
    return {lanes_.lane() < n ? to_float(from[lanes_.lane()]) : rest};
  }
  FERRY_FN void store(values v, float* to) const { to[lanes_.lane()] = v.v; }
  FERRY_FN values fill(float x) const { return {x}; }

  FERRY_FN float sum(values v) const {
    return merge(v.v, [](float a, float b) { return a + b; });
  }
  FERRY_FN four sum_four(values a, values b, values c, values d) const {
    return {{sum(a), sum(b), sum(c), sum(d)}};
  }
  FERRY_FN void store_four(four const& f, float* to) const {
    int const i = lanes_.lane();
    if (i < 4) to[i] = i < 2 ? (i == 0 ? f.v[0] : f.v[1]) : (i == 2 ? f.v[2] : f.v[3]);
  }
  FERRY_FN values larger(values a, values b) const { return {a.v > b.v ? a.v : b.v}; }
  FERRY_FN values multiply_add(values a, values b, values c) const {
    return {__builtin_fmaf(a.v, b.v, c.v)};
  }
  FERRY_FN float largest(values v) const {
    return merge(v.v, [](float a, float b) { return b > a || a != a ? b : a; });
  }
  FERRY_FN int first_equal(values v, float x) const {
    return merge(std::int32_t{v.v == x ? lanes_.lane() : lanes},
                 [](std::int32_t a, std::int32_t b) { return b < a ? b : a; });
  }
  FERRY_FN float at_lane(values v, int lane) const {
    // The bits of one lane and zeros of the others.
    return float_of(merge(lanes_.lane() == lane ? bits_of(v.v) : 0u,
                          [](std::uint32_t a, std::uint32_t b) { return a | b; }));
  }
  template <class F, class... Values>
  FERRY_FN values map(F const& f, Values const&... v) const {
    return {f(v.v...)};
  }
  template <class F>
  FERRY_FN void for_each(std::int64_t n, F const& f) const {
    for (std::int64_t i = lanes_.lane(); i < n; i += lanes) f(i);
  }
  template <class T, class F>
  FERRY_FN T merge(T value, F const& f) const {
    // After each step the values repeat every N lanes, so "N further on" is the other half.
    value = f(value, lanes_.template from_further<8>(value));
    value = f(value, lanes_.template from_further<4>(value));
    value = f(value, lanes_.template from_further<2>(value));
    return f(value, lanes_.template from_further<1>(value));
  }
  FERRY_FN void sync() const { lanes_.sync(); }

 private:
  Lanes lanes_;
};

}  // namespace ferry
