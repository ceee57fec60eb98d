// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// The kernel of the strips' contract suite, run by CPU strips, emulated ones and those of GPUs.
#pragma once

#include <ferry/base/number_formats.hpp>
#include <ferry/exec/strip.hpp>

#include <cstdint>

namespace ferry::test {

enum class strip_check {
  sum,
  largest,
  first_equal,
  first_equal_of_none,
  at_lane,
  largest_without_nan,
  sum_of_a_few,
  sum_of_none,
  narrow_values,
  mapped,
  larger,
  larger_than_nan,
  arithmetic,
  one_rounding,
  for_each,
  leader,
  stored_values,
  stored_sums,
  count_
};

/// What strips are given, and what they are to make of it.
struct strip_inputs {
  float each[16];
  float squares[16];  ///< of 0 ... 15
  float some[4];      ///< NaN, 5, NAN, 2
  bf16 narrow[2];     ///< 1.5, -4
  float sum;          ///< of each, by the tree that strip.hpp promises
  float sum_of_five;  ///< of the first five and zeros, by the same
  float largest;
  float third;  ///< 1 / 3
  float fused;  ///< 3 * third - 1 in one rounding
};

struct check_strips {
  static constexpr int num_checks = static_cast<int>(strip_check::count_);
  static constexpr int memory_of_a_strip = 20;

  strip_inputs const* in = nullptr;
  float* memory = nullptr;        ///< [strips, memory_of_a_strip]
  std::int32_t* wrong = nullptr;  ///< [strips, num_checks] lanes that found it so

  template <class F>
  void pointers(F const& f) {
    f(in), f(memory), f(wrong);
  }

  template <strip Strip>
  FERRY_FN void operator()(Strip const& s) const {
    auto const v = s.load(in->each);
    expect(s, strip_check::sum, s.sum(v) == in->sum);
    expect(s, strip_check::largest, s.largest(v) == in->largest);
    expect(s, strip_check::first_equal, s.first_equal(v, in->each[11]) == 11);
    expect(s, strip_check::first_equal_of_none, s.first_equal(v, -1.0F) == 16);
    bool at_lanes = true;
    for (int i = 0; i < 16; ++i) {
      float const there = s.at_lane(v, i);
      at_lanes = at_lanes && there == in->each[i];
    }
    expect(s, strip_check::at_lane, at_lanes);
    expect(s, strip_check::largest_without_nan,
           s.largest(s.load_first(in->some, 4, in->some[0])) == 5);
    expect(s, strip_check::sum_of_a_few, s.sum(s.load_first(in->each, 5, 0)) == in->sum_of_five);
    expect(s, strip_check::sum_of_none, s.sum(s.load_first(in->each, 0, 2)) == 32);
    expect(s, strip_check::narrow_values, s.sum(s.load_first(in->narrow, 2, 0)) == -2.5F);
    combine(s, v);
    count(s);
    store(s);
  }

 private:
  template <strip Strip>
  FERRY_FN void expect(Strip const& s, strip_check which, bool right) const {
    std::int32_t const lanes =
        s.merge(std::int32_t{!right}, [](std::int32_t a, std::int32_t b) { return a + b; });
    if (s.leader()) wrong[s.index() * num_checks + static_cast<int>(which)] = lanes;
  }

  template <strip Strip>
  FERRY_FN void combine(Strip const& s, typename Strip::values const& v) const {
    auto const less = s.map([](float a, float b) { return a - b; }, v, s.fill(1));
    expect(s, strip_check::mapped, s.at_lane(less, 7) == in->each[7] - 1);
    expect(s, strip_check::larger, s.at_lane(s.larger(v, s.fill(40)), 0) == 40);
    expect(s, strip_check::larger_than_nan,
           s.at_lane(s.larger(s.fill(in->some[0]), v), 3) == in->each[3]);
    expect(s, strip_check::arithmetic,
           s.at_lane(v + 2.0F * v * v, 2) == in->each[2] + 2 * in->each[2] * in->each[2]);
    auto const fused = s.multiply_add(s.fill(in->third), s.fill(3), s.fill(-1));
    expect(s, strip_check::one_rounding, s.at_lane(fused, 9) == in->fused);
  }

  template <strip Strip>
  FERRY_FN void count(Strip const& s) const {
    auto const add = [](std::int32_t a, std::int32_t b) { return a + b; };
    std::int32_t mine = 0;
    s.for_each(37, [&](std::int64_t i) { mine += static_cast<std::int32_t>(i); });
    expect(s, strip_check::for_each, s.merge(mine, add) == 37 * 36 / 2);
    expect(s, strip_check::leader, s.merge(std::int32_t{s.leader()}, add) == 1);
  }

  template <strip Strip>
  FERRY_FN void store(Strip const& s) const {
    float* const own = memory + s.index() * memory_of_a_strip;
    auto const squares = s.load(in->squares);
    auto const ones = s.fill(1);
    s.store(squares, own);
    s.store_four(s.sum_four(squares, ones, ones + ones, squares * squares) * 0.5F, own + 16);
    s.sync();
    bool stored = true;
    for (int i = 0; i < 16; ++i) stored = stored && own[i] == in->squares[i];
    expect(s, strip_check::stored_values, stored);
    expect(s, strip_check::stored_sums,
           own[16] == 620 && own[17] == 8 && own[18] == 16 && own[19] == 89156);
  }
};

}  // namespace ferry::test
