// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

// Conversions to and from fp8 as a device makes them, by instructions where it has some, on every
// code and beside every point where rounding changes.

#include "exchange/one_row.hpp"
#include "exchange/test_device.hpp"

#include <ferry/base/block_scale.hpp>
#include <ferry/base/number_formats.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace ferry;
using namespace ferry::oracle;

float next_bf16(float x, float towards) {
  bf16 const code = from_float<bf16>(x);
  bool const away = std::fabs(towards) > std::fabs(x);
  return to_float(bf16{static_cast<std::uint16_t>(code.bits + (away ? 1 : -1))});
}

/// Rows of whole blocks whose scale is 1: each begins with the largest number of T. All codes
/// follow, and the midpoints between them with the next bf16 on either side, of both signs.
template <class T>
std::vector<float> edges_of() {
  std::vector<float> all;
  float const largest = T::largest;
  auto const add = [&](float x) {
    for (float v : {x, -x}) {
      if (all.size() % scale_block == 0) all.push_back(largest);
      all.push_back(v);
    }
  };
  for (std::uint32_t code = 0; code < 128; ++code) {
    float const low = to_float(T{static_cast<std::uint8_t>(code)});
    float const high = to_float(T{static_cast<std::uint8_t>(code + 1)});
    if (std::isnan(low)) continue;
    add(low);
    if (low == largest || std::isnan(high)) continue;
    float const middle = (low + high) / 2;
    for (float v : {middle, next_bf16(middle, 0), next_bf16(middle, HUGE_VALF)}) add(v);
  }
  while (all.size() % scale_block != 0) all.push_back(0);
  return all;
}

template <class T>
void round_as_the_host_does(wire format, std::uint8_t (*code_of)(float)) {
  std::vector<float> values = edges_of<T>();
  std::size_t const known = values.size();
  // A block with what is no number, which has a scale of its own: as on the CPU.
  values.resize(known + scale_block, 1);
  values[known + 1] = NAN;
  values[known + 2] = -NAN;
  for (dtype tokens : {dtype::bf16, dtype::f32}) {
    exchange_options const options{.tokens = tokens, .wire = format};
    one_row const here = step_of(device(), options, values);
    for (std::size_t i = 0; i < known; ++i)
      ASSERT_EQ(here.codes[i], code_of(values[i])) << values[i] << " as " << to_string(format);
    for (int turn = 0; turn < 2; ++turn) {
      one_row const there = step_of(test_device(turn), options, values);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(there.codes[i], here.codes[i])
            << values[i] << " as " << to_string(format) << " from " << to_string(tokens);
    }
  }
}

TEST(device_conversion, rounds_to_every_code_to_nearest_even) {
  round_as_the_host_does<e4m3>(wire::fp8_e4m3, [](float x) { return from_float<e4m3>(x).bits; });
  round_as_the_host_does<e4m3fnuz>(wire::fp8_e4m3fnuz,
                                   [](float x) { return from_float<e4m3fnuz>(x).bits; });
  round_as_the_host_does<e4m3>(wire::fp8_ue8m0,
                               [](float x) { return quantise(x, e8m0{127}).bits; });
}

template <class T>
void read_every_code(wire format) {
  std::vector<float> values;
  for (std::uint32_t code = 0; code < 256; ++code) {
    if (values.size() % scale_block == 0) values.push_back(T::largest);
    float const v = to_float(T{static_cast<std::uint8_t>(code)});
    if (!std::isnan(v)) values.push_back(v);
  }
  while (values.size() % scale_block != 0) values.push_back(0);
  for (int turn = 0; turn < 2; ++turn) {
    one_row const seen =
        step_of(test_device(turn),
                {.tokens = dtype::f32, .wire = wire::f32, .combine_wire = format}, values);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(seen.home[i], values[i]) << to_string(format);
  }
}

TEST(device_conversion, reads_every_code_as_the_host_does) {
  read_every_code<e4m3>(wire::fp8_e4m3);
  read_every_code<e4m3fnuz>(wire::fp8_e4m3fnuz);
}

}  // namespace
