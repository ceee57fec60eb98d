// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

#include "sampler.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

namespace ferry::decode {
namespace {

/// One step of splitmix64. The standard library's distributions may differ from one library to
/// the next.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

result<std::int32_t> best(std::span<float const> logits) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    // A comparison with it is false either way.
    if (std::isnan(logits[i]))
      return error{error_code::malformed_input, fmt::format("the logit of token {} is NaN", i)};
    if (logits[i] > logits[at]) at = i;
  }
  if (std::isinf(logits[at]))
    return error{error_code::malformed_input,
                 fmt::format("the largest logit, of token {}, is {}", at, logits[at])};
  return static_cast<std::int32_t>(at);
}

}  // namespace

sampler::sampler(double temperature, std::uint64_t seed, std::uint64_t prompt)
    : temperature_(temperature), state_(mix(mix(seed + 0x9E3779B97F4A7C15u) + prompt)) {}

double sampler::draw() {
  state_ += 0x9E3779B97F4A7C15u;
  return static_cast<double>(mix(state_) >> 11) * 0x1p-53;
}

result<std::int32_t> sampler::choose(std::span<float const> logits) {
  FERRY_TRY(auto top, best(logits));
  if (temperature_ == 0) return top;
  double largest = logits[static_cast<std::size_t>(top)];
  auto weight = [&](float logit) { return std::exp((logit - largest) / temperature_); };
  double sum = 0;
  for (float logit : logits) sum += weight(logit);
  double rest = draw() * sum;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    rest -= weight(logits[i]);
    if (rest < 0) return static_cast<std::int32_t>(i);
  }
  // Rounding used up the sum before the draw did.
  return top;
}

}  // namespace ferry::decode
