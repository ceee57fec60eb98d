// SPDX-License-Identifier: MIT
// Copyright (c) 2026 the ferry authors

/// Random numbers that are the same with every compiler and on every device.
#pragma once

#include <ferry/base/platform.hpp>

#include <cstdint>

namespace ferry::deepseek {

/// The finisher of splitmix64.
FERRY_FN constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// One step of splitmix64: the state after the one given.
FERRY_FN constexpr std::uint64_t next_state(std::uint64_t state) {
  return state + 0x9E3779B97F4A7C15u;
}

/// What a state draws, in [0, 1).
FERRY_FN constexpr double draw_of(std::uint64_t state) {
  return static_cast<double>(mix(state) >> 11) * 0x1p-53;
}

/// The first state of a prompt's draws: its text does not depend on other prompts.
FERRY_FN constexpr std::uint64_t first_state(std::uint64_t seed, std::uint64_t prompt) {
  return mix(mix(next_state(seed)) + prompt);
}

}  // namespace ferry::deepseek
